// SPDX-License-Identifier: Apache-2.0
// Two specs beside each other, line by line; what differs stands out.

import { make, spaced } from "./dom.js";

/** Return the comparison of two sides as a table, or a line that says what is missing. */
export function comparison(left, right) {
  const rows = [];
  for (const group of ["The spec", "The element"]) {
    const [a, b] = [facts(left)[group], facts(right)[group]];
    rows.push(make("tr", { class: "group" }, make("th", { colspan: "3", scope: "rowgroup" }, group)));
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const [x, y] = [a[name] ?? "–", b[name] ?? "–"];
      rows.push(make("tr", { class: x === y ? "same" : "differs" }, make("th", { scope: "row" }, name), make("td", {}, x), make("td", {}, y)));
    }
  }
  const differing = rows.filter((row) => row.className === "differs").length;
  return [
    make("h2", {}, "Comparison"),
    make("p", { class: "soft" }, differing ? `${differing} of ${rows.length - 2} lines differ` : "Both specs place alike."),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison table" }, make("table", { class: "comparison" },
      make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, "A"), make("th", { scope: "col" }, "B"))),
      make("tbody", {}, ...rows))),
  ];
}

function facts({ found, way }) {
  const spec = { fits: !found ? "cannot be placed" : found.fit.fits ? "yes" : "no", ...(found?.spec?.facts ?? {}) };
  if (found && found.fit.address !== null) spec["buffer at"] = spaced(found.fit.address);
  const steps = (found?.spec && way?.steps) || [];
  return { "The spec": spec, "The element": Object.fromEntries(steps.map((step) => [step.name, step.name === "address" ? step.value : `${step.value} · ${step.detail}`])) };
}
