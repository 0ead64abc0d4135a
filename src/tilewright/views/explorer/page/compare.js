// SPDX-License-Identifier: Apache-2.0
// Two specs beside each other, line by line; what differs stands out.

import { make, spaced } from "./dom.js";

/** Return the comparison of two sides as a table, or a line that says what is missing. */
export function comparison(left, right) {
  const [a, b] = [facts(left), facts(right)];
  const names = [...new Set([...a.keys(), ...b.keys()])];
  const rows = names.map((name) => {
    const [x, y] = [a.get(name) ?? "–", b.get(name) ?? "–"];
    return make("tr", { class: x === y ? "" : "differs" }, make("th", { scope: "row" }, name), make("td", {}, x), make("td", {}, y));
  });
  const differing = rows.filter((row) => row.className === "differs").length;
  return [
    make("h2", {}, "Comparison"),
    make("p", { class: "soft" }, differing ? `${differing} of ${rows.length} lines differ` : "Both specs place alike."),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison table" }, make("table", { class: "comparison" },
      make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, "A"), make("th", { scope: "col" }, "B"))),
      make("tbody", {}, ...rows))),
  ];
}

function facts(side) {
  const found = new Map();
  const { found: answer, way } = side;
  if (!answer) return found.set("fits", "cannot be placed");
  found.set("fits", answer.fit.fits ? "yes" : "no");
  for (const [name, value] of Object.entries(answer.spec?.facts ?? {})) found.set(name, value);
  if (answer.fit.address !== null) found.set("buffer at", spaced(answer.fit.address));
  for (const step of way?.steps ?? []) found.set(step.name === "page" ? "page of the element" : step.name, `${step.value}${step.name === "address" ? "" : ` · ${step.detail}`}`);
  return found;
}
