// SPDX-License-Identifier: Apache-2.0
// Two specs beside each other, line by line; what differs stands out.

import { make, spaced } from "./dom.js";

let all = false; // whether equal lines are shown, too

/** Return the comparison of two sides as a table, or a line that says what is missing. */
export function comparison(left, right) {
  const rows = [];
  for (const group of ["Spec", "Element"]) {
    const [a, b] = [facts(left)[group], facts(right)[group]];
    rows.push(make("tr", { class: "group" }, make("th", { colspan: "3", scope: "rowgroup" }, group)));
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const [x, y] = [a[name] ?? "–", b[name] ?? "–"];
      rows.push(make("tr", { class: x === y ? "same" : "differs" }, make("th", { scope: "row" }, name), make("td", {}, x), make("td", {}, y)));
    }
  }
  const table = make("table", { class: all ? "comparison" : "comparison only" },
    make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, "A"), make("th", { scope: "col" }, "B"))),
    make("tbody", {}, ...rows));
  const choice = make("input", { type: "checkbox", onchange: () => { all = choice.checked; table.classList.toggle("only", !all); } });
  choice.checked = all;
  const differing = rows.filter((row) => row.className === "differs").length;
  return [
    make("h2", {}, "Comparison"),
    make("p", { class: "soft" }, differing ? `${differing} of ${rows.length - 2} lines differ` : "Both specs have the same placement."),
    make("label", { class: "choice" }, choice, "Show equal lines too"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison table" }, table),
  ];
}

function facts({ result, way }) {
  const spec = { fits: !result ? "cannot be placed" : result.fit.fits ? "yes" : "no", ...(result?.spec?.facts ?? {}) };
  if (result && result.fit.address !== null) spec["buffer address"] = spaced(result.fit.address);
  const element = {};
  for (const { name, value, detail } of (result?.spec && way?.steps) || []) {
    const line = name in element ? `${name} address` : name;
    element[line] = detail && !/^= /.test(detail) ? `${value}, ${detail}` : value;
  }
  return { "Spec": spec, "Element": element };
}
