// SPDX-License-Identifier: Apache-2.0
// Layouts as they are written: what an operation makes of them and how, which thread holds what, and bank conflicts.

import { ask } from "./requests.js";
import { announce, card, make } from "./dom.js";
import { examples } from "./examples.js";
import { exports } from "./exporting.js";
import { field, showProblem } from "./fields.js";
import { factsOf, scene } from "./pictures.js";

const PAUSE = 160; // milliseconds of no typing before anything is asked
const USUAL = { notation: "(4,8):(8,1)", base: "decimal", itemsize: "stated" };

const MORE = ["label", "color", "base", "extents"]; // fields that few need

/** The tab of a layout; `changed` is called when it shows something else, `leapt` before that is a step in the history. */
export class LayoutTab {
  constructor(words, choices, changed, leapt) {
    this.changed = changed;
    this.leapt = leapt;
    this.asked = false;
    this.texts = { "": "none: the layout itself", ...choices.operation };
    const operations = ["", ...Object.keys(choices.operation)];
    const add = (name, label, hint, picked, texts) => field(name, label, words[name] ?? USUAL[name] ?? "", picked, hint, () => this.later(name), texts);
    this.rows = {
      notation: add("notation", "Layout A, as shape:stride, or as CuTe, XLA, MLIR, Triton, oneDNN or ttnn write it", "(4,8):(8,1)"),
      op: add("op", "Operation", "", operations, this.texts),
      other: add("other", "Layout B, or a tiler such as <4,6>", "(4,3):(3,1)"),
      extents: add("extents", "Shape", "8x8"),
      label: add("label", "Label of cells", "offset"),
      color: add("color", "Color of cells", "offset"),
      base: add("base", "Addresses", "", ["decimal", "hex"]),
      tile: add("tile", "Tile, to color it by thread", "16x8"),
      threads: add("threads", "Threads, to count bank conflicts", "32:1"),
      itemsize: add("itemsize", "Bytes per element", "", choices.itemsize, { stated: "as the text states" }),
    };
    this.shown = make("div", { class: "plan", tabindex: "-1" });
    const rows = (...names) => make("div", { class: "row" }, ...names.map((name) => this.rows[name].row));
    this.more = make("details", {}, make("summary", { class: "soft" }, "How it is drawn, and a shape for notations without one"), rows(...MORE));
    this.more.open = MORE.some((name) => words[name]);
    this.element = make("div", { class: "single" },
      make("form", { class: "card", "aria-label": "Layout", onsubmit: (event) => event.preventDefault() },
        examples("layout", (words) => this.fill(words)),
        this.rows.notation.row, rows("op", "other", "tile", "threads", "itemsize"), this.more),
      this.shown);
    this.relevant();
  }

  /** Take an example, or another layout, in place of all that was typed. */
  fill(words) {
    for (const [name, { control }] of Object.entries(this.rows)) control.value = words[name] ?? USUAL[name] ?? "";
    this.relevant();
    this.leapt();
    this.update();
  }

  relevant() {
    this.rows.other.row.hidden = !this.texts[this.rows.op.control.value]?.includes("B");
    this.rows.itemsize.row.hidden = !this.rows.threads.control.value.trim();
  }

  /** Return what is asked, and what a link says: what is not as usual. */
  words() {
    const typed = Object.entries(this.rows).filter(([, { row }]) => !row.hidden).map(([name, { control }]) => [name, control.value.trim()]);
    return Object.fromEntries(typed.filter(([name, value]) => value && (name === "notation" || value !== USUAL[name])));
  }

  remove() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.element.remove();
  }

  later(name) {
    this.relevant();
    this.element.setAttribute("aria-busy", "true");
    clearTimeout(this.timer);
    if (name === "op") this.leapt(); // a step of its own
    this.timer = setTimeout(() => this.update(), PAUSE);
  }

  problems(result) {
    for (const [name, made] of Object.entries(this.rows)) showProblem(made, result[name]);
    if (MORE.some((name) => result[name])) this.more.open = true;
  }

  async update() {
    clearTimeout(this.timer);
    this.asked = true;
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      const result = await ask("layout", this.words(), request.signal);
      this.problems(result.problems);
      this.shown.replaceChildren(...this.cards(result));
      this.shown.classList.remove("faded");
      announce(`Drawn: ${result.text}`);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.problems({ [problem.field in this.rows ? problem.field : "notation"]: problem.message });
      this.shown.classList.add("faded");
    }
    if (this.request === request) this.element.removeAttribute("aria-busy");
    this.changed();
  }

  cards(result) {
    const failed = (message) => this.problems({ notation: message });
    const operands = result.operands.map(({ name, text, note, scene: drawn }) => card(`${name} = ${text}`,
      drawn ? scene(drawn, null, { facts: false }) : make("p", { class: "soft" }, note)));
    const title = result.operands.length ? `${this.texts[this.rows.op.control.value]} = ${result.text}` : result.text;
    return [
      operands.length ? make("div", { class: "operands" }, ...operands) : null,
      result.threads ? card("Which thread holds which element", scene(result.threads)) : null,
      result.banks ? card("Bank conflicts, as shared memory", scene(result.banks), this.remedy(result.remedy)) : null,
      card(title, scene(result.scene), exports("layout", () => this.words(), failed)),
      result.steps.length ? card("Step by step", steps(result.steps)) : null,
      result.notations.length ? card("In other notations", notations(result.notations)) : null,
    ].filter(Boolean);
  }

  /** Offer the swizzle that prevents conflicts. */
  remedy(result) {
    if (!result) return null;
    if (!result.text) return make("p", { class: "soft" }, result.note);
    return make("p", { class: "remedy" }, "Instead: ",
      make("button", { type: "button", onclick: () => { const { threads, itemsize } = this.words(); this.fill({ notation: result.text, threads, itemsize }); } }, result.text),
      make("span", { class: "soft" }, ` ${result.note}`));
  }
}

function steps(list) {
  return make("ol", { class: "steps" }, ...list.map(({ name, operands, result, why }) =>
    make("li", {}, make("code", {}, `${name}(${operands}) = `, make("b", {}, result)), make("p", { class: "soft" }, why))));
}

function notations(result) {
  return factsOf(result.map(({ name, text, assumed }) =>
    ({ name: assumed ? `${name}, assuming elements of ${assumed}` : name, value: text, tone: "notation" })));
}
