// SPDX-License-Identifier: Apache-2.0
// A model: whether it fits a machine with its users, from the config.json that somebody pastes.

import { ask } from "./requests.js";
import { announce, card, make } from "./dom.js";
import { field } from "./fields.js";
import { scene } from "./pictures.js";

const FIELDS = {
  machine: { label: "Machine", usual: "N150", pick: true },
  users: { label: "Users", usual: "", hint: "1" },
  context: { label: "Context of each", usual: "", hint: "as the model can" },
};
const PAUSE = 300; // milliseconds of no typing before anything is asked

/** The card of a model; what is pasted stays on this machine, and is in no link. */
export class ModelCard {
  constructor(given, choices, changed) {
    this.changed = changed;
    const id = `config-${Math.random().toString(36).slice(2, 8)}`;
    this.config = make("textarea", { id, name: "config", rows: "4", spellcheck: "false", autocomplete: "off", placeholder: "config.json of a model", oninput: () => this.later() });
    this.rows = Object.fromEntries(Object.entries(FIELDS).map(([name, about]) =>
      [name, field(name, about.label, given[name] ?? about.usual, about.pick && choices[name], about.hint, () => this.later())]));
    this.answer = make("div", { class: "pictures" });
    this.element = card("Model", make("div", { class: "field" }, make("label", { for: id }, "config.json, pasted: does the model fit, and for how many users?"), this.config),
      make("div", { class: "row" }, ...Object.values(this.rows).map(({ row }) => row)), this.answer);
  }

  /** Return what a link says about it: the machine and the numbers, not the model. */
  words() {
    return Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value.trim()]).filter(([name, value]) => value !== FIELDS[name].usual));
  }

  /** Show the model of an example, if it has one. */
  async fill({ config, ...words }) {
    if (!config) return;
    this.config.value = config;
    for (const [name, { control }] of Object.entries(this.rows)) control.value = words[name] ?? FIELDS[name].usual;
    await this.update();
    this.element.scrollIntoView();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), PAUSE);
  }

  async update() {
    this.changed();
    if (!this.config.value.trim()) { this.answer.replaceChildren(); return; }
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      const words = Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value.trim()]));
      const result = await ask("model", { ...words, config: this.config.value }, request.signal);
      this.answer.replaceChildren(...this.shown(result));
      announce(result.verdict);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.answer.replaceChildren(make("p", { class: "problem", role: "alert" }, problem.message));
    }
    if (this.request === request) this.element.removeAttribute("aria-busy");
  }

  shown(result) {
    const rows = result.machines.map((each) => make("tr", {}, make("th", { scope: "row" }, each.name), make("td", {}, each.fits ? "fits" : "does not fit"),
      make("td", {}, String(each.users ?? 0)), make("td", {}, String(each.context ?? 0))));
    return [
      make("p", { class: result.fits ? "pill good" : "pill bad" }, result.verdict),
      scene(result.scene),
      make("pre", {}, result.text),
      ...(result.changes.length ? [make("h4", {}, "What would fit"), ...result.changes.map((text) => make("p", {}, text))] : []),
      make("h4", {}, "Machines"),
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Machine", "Verdict", "Users, all at once", "Context of one"].map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows))),
    ];
  }
}
