// SPDX-License-Identifier: Apache-2.0
// Whether it fits: the verdict, how full a bank gets, and what would fit instead.

import { announce, card, make, sized, spaced } from "./dom.js";

/** Return the verdict on a spec; choose(words) takes one of the alternatives. */
export function verdict(result, choose) {
  const { fit } = result;
  const used = fit.bytes_per_bank;
  const parts = [
    make("p", { class: fit.fits ? "pill good" : "pill bad" }, fit.fits ? "Fits" : "Does not fit", make("span", {}, ` ${fit.chip}`)),
  ];
  if (fit.banks) {
    parts.push(
      bar(used, fit.circular, fit.bank_bytes),
      make("p", { class: "numbers" },
        make("b", {}, spaced(used)), ` bytes in ${fit.banks === 1 ? "one bank" : `each of ${fit.banks} banks`}`,
        make("span", { class: "soft" }, ` · ${sized(used)} of ${sized(fit.bank_bytes)}`),
        fit.address === null ? null : make("span", { class: "soft" }, ` · buffer at ${spaced(fit.address)}`)),
    );
  }
  parts.push(...fit.problems.map((problem) => make("p", { class: "problem", role: "alert" }, problem)));
  parts.push(...fit.warnings.map((warning) => make("p", { class: "soft" }, warning)));
  if (fit.alternatives.length) {
    parts.push(make("h4", {}, "What would fit, nearest first"), make("ul", { class: "alternatives" },
      ...fit.alternatives.map((each) => make("li", {}, make("button", { type: "button", onclick: () => choose(each.words) }, each.text)))));
  }
  return card("Fit", ...parts);
}

/** Return a card without an answer: the problem, unless it is said beside a field of the form. */
export function unanswered(title, pill, { message, field }) {
  return card(title, make("p", { class: "pill" }, pill),
    field ? make("p", { class: "soft" }, "Correct the field that is marked in the form.") : make("p", { class: "problem", role: "alert" }, message));
}

function bar(used, circular, whole) {
  const share = (bytes) => Math.max(bytes ? 0.5 : 0, Math.min(100, (100 * bytes) / Math.max(1, whole)));
  const piece = (kind, bytes, title) => {
    const result = make("span", { class: kind, title });
    result.style.width = `${share(bytes)}%`;
    return result;
  };
  return make("div", { class: "bar", role: "img", "aria-label": `${share(used).toFixed(1)} % of a bank used` },
    piece("used", used, `tensor: ${used} bytes`), piece("circular", circular, `circular buffers: ${circular} bytes`));
}

/** Return the spec in Python, with what is known about it. */
export function about(result) {
  if (!result.spec) return null;
  return card("Spec", make("dl", { class: "facts" }, ...Object.entries(result.spec.facts).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value)))), code(result.spec.python));
}

/** Return Python that can be copied. */
export function code(text) {
  const copy = make("button", {
    type: "button", class: "copy", "aria-label": "Copy the Python",
    onclick: async () => {
      await navigator.clipboard?.writeText(text).catch(() => {});
      copy.textContent = "Copied";
      announce("Copied");
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return make("div", { class: "code" }, make("pre", { tabindex: "0", "aria-label": "In Python" }, make("code", {}, text)), copy);
}
