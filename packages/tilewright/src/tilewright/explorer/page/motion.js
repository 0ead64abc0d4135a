// SPDX-License-Identifier: Apache-2.0
// The pipeline: the tiles of the tensor, and when each is imported, computed and exported.

import { picture } from "./requests.js";
import { card, make } from "./dom.js";
import { exports } from "./exporting.js";
import { field } from "./fields.js";
import { scene } from "./pictures.js";

/** What the pipeline asks for. */
export const MOTION = {
  scheme: { label: "Buffering", usual: "double", pick: true },
  tile_moved: { label: "Tile", usual: "", hint: "a row of tiles" },
  overlap: { label: "Overlap", usual: "", hint: "0" },
  depth: { label: "Depth", usual: "", hint: "3", when: (words) => ["buffered", "direct"].includes(words.scheme) },
  times: { label: "Times: import, compute, export", usual: "2x3x2", hint: "2x3x2" },
};

/** The card of the pipeline; words() are those of the spec. */
export class Motion {
  constructor(name, given, choices, words, changed) {
    this.given = words;
    this.rows = Object.fromEntries(Object.entries(MOTION).map(([each, about]) =>
      [each, field(each, about.label, given[each] ?? about.usual, about.pick && choices[each], about.hint, () => { this.relevant(); changed(); })]));
    this.error = make("p", { class: "error", role: "alert", id: `error-motion-${name}`, hidden: true });
    this.pictures = make("div", { class: "pictures" });
    this.element = card("Pipeline", make("div", { class: "row" }, ...Object.values(this.rows).map(({ row }) => row)), this.error, this.pictures);
    this.relevant();
  }

  relevant() {
    const typed = Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value]));
    for (const [name, { row }] of Object.entries(this.rows)) row.hidden = !(MOTION[name].when ?? (() => true))(typed);
  }

  words() {
    return Object.fromEntries(Object.entries(this.rows).filter(([, { row }]) => !row.hidden).map(([name, { control }]) => [name, control.value.trim()]));
  }

  problem(message, name) {
    this.error.hidden = !message;
    this.error.textContent = message;
    for (const [each, { control }] of Object.entries(this.rows)) {
      if (message && each === name) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", this.error.id); }
      else { control.removeAttribute("aria-invalid"); control.removeAttribute("aria-describedby"); }
    }
  }

  /** Return the buttons that save a picture, to stand under it. */
  exports(name) {
    return exports(name, () => ({ ...this.given(), ...this.words() }), (message) => this.problem(message));
  }

  async update(words, signal) {
    const asked = { ...words, ...this.words() };
    try {
      const [schedule, tiles] = await Promise.all([picture("schedule", asked, signal), picture("tiles", asked, signal)]);
      this.problem("");
      this.pictures.replaceChildren(scene(schedule), this.exports("schedule"), scene(tiles), this.exports("tiles"));
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      this.problem(problem.message, problem.field);
    }
  }
}
