// SPDX-License-Identifier: Apache-2.0
// Layouts as they are written: shape and strides, swizzles, compositions, named axes.

import { picture } from "./asking.js";
import { card, make } from "./dom.js";
import { exports } from "./exporting.js";
import { field } from "./fields.js";
import { scene } from "./pictures.js";

const EXAMPLES = ["(4,8):(8,1)", "((4,2),(4,3)):((4,48),(1,16))", "Sw<3,0,3> o (8,8):(8,1)", "(12,10):(1@bank,2048@addr)", "(8,(4,2)):(2,(16,1))", "bf16[16,128]{1,0:T(8,128)(2,1)}"];

/** The view of a layout that is typed. */
export class Notation {
  constructor(given, drawn, changed) {
    const later = () => {
      this.element.setAttribute("aria-busy", "true");
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.update(), 160);
    };
    this.field = field("notation", "Layout, as shape:stride, or as CuTe, XLA, MLIR or Triton write it", given || EXAMPLES[0], null, EXAMPLES[0], later);
    this.options = {
      label: field("label", "Label", drawn.label ?? "", null, "offset", later),
      color: field("color", "Color", drawn.color ?? "", null, "offset", later),
      base: field("base", "Addresses", drawn.base ?? "decimal", ["decimal", "hex"], null, later),
    };
    this.changed = changed;
    this.error = make("p", { class: "error", role: "alert", id: "error-notation", hidden: true });
    this.shown = make("div");
    const examples = EXAMPLES.map((text) => make("button", { type: "button", class: "example", onclick: () => { this.field.control.value = text; this.update(); } }, text));
    this.element = make("div", { class: "single" },
      make("form", { class: "card", "aria-label": "Layout", onsubmit: (event) => event.preventDefault() },
        this.field.row, make("div", { class: "row" }, ...Object.values(this.options).map(({ row }) => row)), this.error, make("p", { class: "soft examples" }, "Try ", ...examples)),
      card("Layout", this.shown, exports("layout", () => ({ notation: this.words(), ...this.drawn() }), (message) => this.problem(message))));
  }

  words() {
    return this.field.control.value.trim();
  }

  /** Return how it is drawn: what is not as usual. */
  drawn() {
    const words = Object.entries(this.options).map(([name, { control }]) => [name, control.value.trim()]);
    return Object.fromEntries(words.filter(([, value]) => value && value !== "decimal"));
  }

  problem(message) {
    this.error.hidden = !message;
    this.error.textContent = message;
    const { control } = this.field;
    if (message) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", "error-notation"); }
    else { control.removeAttribute("aria-invalid"); control.removeAttribute("aria-describedby"); }
    this.shown.classList.toggle("faded", Boolean(message));
  }

  async update() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      const found = await picture("layout", { notation: this.words(), ...this.drawn() }, asking.signal);
      this.problem("");
      this.shown.replaceChildren(scene(found));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.problem(problem.message);
    }
    if (this.asking === asking) this.element.removeAttribute("aria-busy");
    this.changed();
  }
}
