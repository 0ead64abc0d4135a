// SPDX-License-Identifier: Apache-2.0
// Pictures from the server, set into the page as elements, never as markup of the page.

import { make } from "./dom.js";
import { follow } from "./marks.js";
import { drawing } from "./svg.js";

/** Return a scene as an element; picked(fields of the cell, number of the panel) is called on a click or Enter. */
export function scene(content, picked, { facts = true } = {}) {
  const svgs = content.panels.map((panel) => drawing(panel.svg));
  const told = make("output", { class: "told", "aria-live": "polite" },
    picked ? "Point, or move with the arrow keys; click or press Enter to choose." : "Point, or move with the arrow keys.");
  const data = content.panels.map((panel) => panel.data);
  const links = data.map((panel) => panel.link);
  follow(svgs, data, told, (number, at) => {
    if (!picked) return;
    const panel = data[number];
    const cell = panel.fields ? Object.fromEntries(Object.entries(panel.fields).map(([name, values]) => [name, values[at]])) : {};
    const link = panel.fields ? (Array.isArray(links[number]) ? links[number][at] : cell[links[number]]) : null;
    picked(cell, number, link);
  }, " · ");
  return make("div", { class: "scene" },
    content.note ? make("p", { class: "soft" }, content.note) : null,
    make("div", { class: "panels" }, ...svgs.map((svg) => make("figure", {}, svg))),
    told,
    facts && content.facts.length ? factsOf(content.facts) : null);
}

/** Return facts as a list of names and values. */
export function factsOf(facts) {
  return make("dl", { class: "facts" }, ...facts.map((fact) =>
    make("div", {}, make("dt", {}, fact.name), make("dd", { class: fact.tone }, fact.value))));
}
