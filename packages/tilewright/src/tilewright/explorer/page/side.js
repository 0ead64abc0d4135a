// SPDX-License-Identifier: Apache-2.0
// One spec with everything there is to see about it.

import { ask, picture } from "./requests.js";
import { Chain } from "./chain.js";
import { announce, card, make } from "./dom.js";
import { examples } from "./examples.js";
import { exports } from "./exporting.js";
import { SpecForm, usual } from "./fields.js";
import { bankContents } from "./bank_contents.js";
import { ModelCard } from "./model.js";
import { Motion } from "./motion.js";
import { scene } from "./pictures.js";
import { about, unanswered, verdict } from "./verdict.js";

const PAUSE = 160; // milliseconds of no typing before anything is asked

/** A side of the page: a form, and its results. */
export class Side {
  constructor(name, words, choices, changed) {
    this.changed = changed;
    this.where = words.at ? { at: words.at } : {};
    this.holder = words.core ? { core: words.core } : words.bank ? { bank: words.bank } : null;
    this.result = null;
    this.chosen = null;
    this.asked = null; // the last question, once there is one
    this.instead = null; // what is asked in place of all this, while another view shows the form
    this.form = new SpecForm(name, words, choices, () => this.later(), examples("tensor", (example) => this.take(example)));
    this.chain = new Chain(name, words.at ?? "", (where) => { this.where = where; this.later("element"); });
    this.motion = new Motion(name, words, choices, () => this.form.words(), () => this.later("motion"));
    this.model = new ModelCard(words, choices, () => changed(this));
    this.fit = make("div");
    this.about = make("div");
    this.bankContents = make("div");
    this.mesh = card("Devices");
    this.placement = card("Placement");
    this.memory = card("Memory map");
    this.results = make("div", { class: "results empty", tabindex: "-1" },
      this.fit, this.mesh, this.placement, this.bankContents, this.chain.element, this.memory, this.motion.element, this.about, this.model.element);
    this.element = make("section", { class: "side", "aria-label": `Spec ${name}` }, this.form.element, this.results);
  }

  /** Return all that a link has to say about this side. */
  words() {
    const motion = Object.fromEntries(Object.entries(this.motion.words()).filter(([name, value]) => !(name === "times" && value === "2x3x2") && !(name === "scheme" && value === "double")));
    const { base, ...form } = this.form.words();
    return { ...form, ...(base === "decimal" ? {} : { base }), ...motion, ...this.model.words(), at: this.chosen ?? this.where.at ?? "", ...(this.holder ?? {}) };
  }

  /** Take an example in place of all that was typed. */
  take({ at, ...words }) {
    this.form.fill({ ...usual(), ...words });
    this.where = at ? { at } : {};
    this.drawn = null;
    const shown = this.update();
    const { request } = this;
    shown.then(() => { if (request === this.request) this.model.fill(words); });
  }

  /** Take it off the page, and forget what was asked. */
  remove() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.element.remove();
  }

  /** Return the shape, however it is spelled. */
  shape() {
    return this.result?.spec?.facts.shape;
  }

  /** Ask again, once nobody types any more; `part` is what changed, if not the spec. */
  later(part = "all") {
    if (this.instead) { this.instead(); return; } // the form is shown elsewhere
    if (this.part !== undefined && this.part !== part) part = "all";
    this.part = part;
    this.element.setAttribute("aria-busy", "true");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(part), PAUSE);
  }

  /** Ask for everything that changed, and show it; what was asked before is forgotten. */
  update(part = "all") {
    return (this.asked = this.answer(part));
  }

  async answer(part) {
    clearTimeout(this.timer);
    // Whatever is still to be asked, or was not answered yet, is asked together with this.
    if ([this.part, this.running].some((other) => other !== undefined && other !== part)) part = "all";
    [this.part, this.running] = [undefined, part];
    this.request?.abort();
    const request = (this.request = new AbortController());
    const { signal } = request;
    this.element.setAttribute("aria-busy", "true");
    try {
      const words = this.form.words();
      if (part === "all") await this.everything(words, signal);
      else if (part === "element") await this.element_(words, signal);
      else await this.motion.update(words, signal);
      this.element.classList.toggle("stale", Boolean(this.result && !this.result.spec));
      if (this.way) this.results.classList.remove("empty");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      const marked = this.form.problem(problem.message, problem.field);
      this.element.classList.add("stale");
      this.result = null;
      this.fit.replaceChildren(unanswered("Fit", "No verdict", { message: problem.message, field: marked })); // an old verdict would be about another spec
      this.about.replaceChildren();
    }
    if (this.request === request) {
      this.running = undefined;
      this.element.removeAttribute("aria-busy");
    }
    this.changed(this);
  }

  async everything(words, signal) {
    this.result = await ask("placement", words, signal);
    const { fit, spec } = this.result;
    if (spec && !/^[\d\sx×,()[\]]*$/.test(words.shape)) { // what ttnn printed was pasted as the shape
      this.form.fill({ alignment: "", ...spec.words });
      words = this.form.words();
    }
    this.form.problem("");
    announce(`${fit.fits ? "Fits" : "Does not fit"} ${fit.chip}`);
    this.fit.replaceChildren(verdict(this.result, (chosen) => { this.form.fill(chosen); this.update(); }));
    this.about.replaceChildren(...[about(this.result)].filter(Boolean));
    if (!spec || !fit.banks) return;
    if (this.drawn && this.drawn !== this.shape()) this.within(this.shape().split("x").map(Number));
    this.drawn = this.shape();
    this.mesh.hidden = !words.mesh;
    this.memory.hidden = !fit.fits; // a map of what cannot be allocated is empty
    await Promise.all([
      words.mesh ? this.shown(this.mesh, "Devices", "mesh", words, signal, (cell) => this.move(cell)) : null,
      this.shown(this.placement, "Placement", "placement", words, signal, (cell, number, link) => this.pick(cell, number, link))
        .then(() => { if (this.placement.querySelector(".panels")) this.results.classList.remove("empty"); }), // before all else is there
      fit.fits ? this.shown(this.memory, "Memory map", "memory", words, signal) : null,
      this.element_(words, signal),
      this.motion.update(words, signal),
      this.hold(words, signal),
    ]);
  }

  /** Look at the first element again if the one that was looked at is not in the new shape. */
  within(extents) {
    const at = (this.chosen ?? "").split(",").map(Number);
    const inside = at.length === extents.length && at.every((n, k) => n < extents[k]);
    this.where = inside ? { at: this.chosen } : {};
  }

  /** Show a picture in its card, or say why there is none. */
  async shown(place, title, name, words, signal, picked) {
    const parts = [make("h3", {}, title)];
    try {
      parts.push(scene(await picture(name, words, signal), picked), exports(name, () => this.form.words(), (message) => this.form.problem(message)));
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      parts.push(make("p", { class: "soft" }, problem.message));
    }
    place.replaceChildren(...parts);
  }

  async element_(words, signal) {
    try {
      const result = await ask("element", { ...words, ...this.where }, signal);
      this.chosen = result.at ? result.at.join(",") : null;
      this.way = result;
      this.chain.show(result, (at) => this.look({ at }), (where) => this.choose(where.core !== null ? { core: where.core } : { bank: String(where.bank) }));
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      this.way = null;
      this.chain.problem(problem.message, problem.field);
    }
  }

  /** Show what the chosen core or bank holds. */
  async hold(words, signal) {
    if (!this.holder) { this.bankContents.replaceChildren(); return; }
    try {
      this.bankContents.replaceChildren(bankContents(await ask("core", { ...words, ...this.holder }, signal), (page) => this.look({ page: String(page) })));
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      this.bankContents.replaceChildren(card("Contents of a core", make("p", { class: "soft" }, problem.message)));
    }
  }

  /** A device, or the part that one holds, was chosen: look at its element. */
  move(cell) {
    if (!cell.device) return;
    this.form.fill({ ...this.form.words(), device: cell.device.split(" ")[0] });
    this.update();
  }

  look(where) {
    this.where = where;
    this.update("element");
  }

  choose(holder) {
    this.holder = holder;
    this.bankContents.setAttribute("aria-busy", "true");
    this.hold(this.form.words(), new AbortController().signal).then(() => {
      this.bankContents.removeAttribute("aria-busy");
      this.changed(this);
    });
  }

  /** A cell of the placement was chosen: a page is looked into, and whoever holds it is told about. */
  pick(cell, number, link) {
    if (cell.page !== undefined && cell.page !== null) this.look({ page: String(cell.page) });
    if (cell.core) this.choose({ core: cell.core });
    else if (number === 1 && cell.shards !== undefined) this.choose(this.form.words().buffer === "dram" ? { bank: String(link).split(",")[0] } : { core: link });
    else if (cell.bank !== undefined && cell.bank !== null) this.choose({ bank: String(cell.bank) });
  }
}
