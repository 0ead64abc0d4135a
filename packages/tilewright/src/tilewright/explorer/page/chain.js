// SPDX-License-Identifier: Apache-2.0
// The way of one element: every step from its coordinate to its byte, and the page it lies in.

import { card, make } from "./dom.js";
import { field } from "./fields.js";
import { scene } from "./pictures.js";

/** The card of one element; look(words) is called with where to look: an element, or a bank and an address. */
export class Chain {
  constructor(name, at, look) {
    this.at = field("at", "Element", at, null, "0,0", () => look({ at: this.at.control.value.trim() }, true));
    this.bank = field("bank", "Bank", "", null, "0", () => this.lookup(look));
    this.address = field("address", "Address", "", null, "1048640 or 0x100040", () => this.lookup(look));
    this.error = make("p", { class: "error", role: "alert", id: `error-at-${name}`, hidden: true });
    this.steps = make("ol", { class: "chain", "aria-label": "Path of the element" });
    this.note = make("p", { class: "soft" });
    this.page = make("div", { class: "page" });
    this.element = card("Where an element lives",
      make("div", { class: "lookup" }, this.at.row, make("span", { class: "or soft" }, "or what lies at"), this.bank.row, this.address.row),
      this.error, this.note, make("div", { class: "way" }, this.steps, this.page));
  }

  lookup(look) {
    const address = this.address.control.value.trim();
    if (address) look({ bank: this.bank.control.value.trim() || "0", address }, true);
  }

  /** Show an element; picked(coordinate) is called when another one is chosen in its page. */
  show(result, picked, core) {
    this.problem("");
    this.note.textContent = result.note ?? "";
    if (result.at === null) { this.steps.replaceChildren(); this.page.replaceChildren(); return; }
    if (document.activeElement !== this.at.control) this.at.control.value = result.at.join(",");
    if (![this.bank.control, this.address.control].includes(document.activeElement)) {
      this.bank.control.value = result.bank;
      this.address.control.value = result.address;
    }
    this.steps.replaceChildren(...result.steps.map((step) => make("li", { "data-step": step.name },
      make("span", { class: "name" }, step.name),
      ["core", "bank"].includes(step.name)
        ? make("button", { type: "button", class: "value", title: "What does it hold?", onclick: () => core(result) }, step.value)
        : make("span", { class: "value" }, step.value),
      make("span", { class: "detail" }, step.detail))));
    this.page.replaceChildren(scene(result.scene, (cell) => { if (cell.element) picked(cell.element); }, { facts: false }));
  }

  /** Show a problem beside the fields, or none. */
  problem(message, name) {
    this.error.hidden = !message;
    this.error.textContent = message;
    for (const each of ["at", "bank", "address"]) {
      const { control } = this[each];
      if (message && (name === each || !name)) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", this.error.id); }
      else { control.removeAttribute("aria-invalid"); control.removeAttribute("aria-describedby"); }
    }
  }
}
