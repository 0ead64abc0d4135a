// SPDX-License-Identifier: Apache-2.0
// Kernels: a program in Mojo or Python, run thread by thread when somebody asks for it, and what is wrong with it.

import { ask, engine } from "./requests.js";
import { announce, card, make } from "./dom.js";
import { field, showProblem } from "./fields.js";
import { isNarrow } from "./folding.js";
import { scene } from "./pictures.js";

const NAMES = { mojo: "Mojo", python: "Python" };

/** Return the tab of kernels, or what stands there if the engine has nothing to run them with. */
export const kernelTab = (words, choices, changed) => (choices.kernels ? new Kernel(words, choices, changed) : new NoKernels(words));

class NoKernels {
  constructor(words) {
    this.given = words;
    this.element = card("Kernel", make("p", {}, "Kernels in Mojo run here, thread by thread, once their companion is installed: ",
      make("code", {}, "pip install 'tilewright[mojo]'")));
  }

  /** Return what a link says: the program that it came with. */
  words() {
    return this.given;
  }

  remove() {
    this.element.remove();
  }
}

/** The tab of kernels; `changed` is called when the program is another. Nothing runs by itself: links are not trusted. */
class Kernel {
  constructor(words, choices, changed) {
    this.changed = changed;
    const [first] = choices.kernels;
    const usual = words.source ? words : { language: first.language, source: first.source };
    this.usual = first;
    this.language = field("language", "Language", usual.language ?? "mojo", choices.language, "", () => changed(), NAMES);
    const id = "kernel-source";
    const source = make("textarea", { id, name: "source", rows: "24", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      oninput: () => this.later(), onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); } } });
    source.value = usual.source ?? "";
    this.source = { control: source, row: make("div", { class: "field" }, make("label", { for: id }, "Program"), source) };
    this.button = make("button", { type: "submit", class: "primary" }, "Run");
    this.stop = make("button", { type: "button", hidden: true, onclick: () => { this.request?.abort(); if (engine.stops) engine.stop(); } }, "Stop");
    const examples = choices.kernels.map((example) => make("button", { type: "button", class: "example", onclick: () => this.fill(example) },
      `${example.title} (${NAMES[example.language]})`));
    this.shown = make("div", { class: "plan", tabindex: "-1" });
    this.element = make("div", { class: "kernel" },
      make("form", { class: "card", "aria-label": "Kernel", onsubmit: (event) => { event.preventDefault(); this.run(); } },
        make("p", { class: "soft examples" }, "Try ", ...examples), this.source.row,
        make("div", { class: "row" }, this.language.row, this.button, this.stop),
        make("p", { class: "soft" }, "It runs here, thread by thread, without a GPU, once you press Run (or Ctrl+Enter).")),
      this.shown);
    this.hint();
  }

  hint() {
    this.shown.replaceChildren(card("Report", make("p", { class: "soft" }, "Press Run: races, barriers that not all threads reach, reads of memory without values, accesses out of bounds and bank conflicts are shown here, with who touched what.")));
  }

  fill({ language, source }) {
    this.language.control.value = language;
    this.source.control.value = source;
    this.hint();
    this.problems({});
    this.changed();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(), 400);
  }

  /** Return what a link says: the program, unless it is the first example. */
  words() {
    const words = { language: this.language.control.value, source: this.source.control.value };
    return words.source === this.usual.source && words.language === this.usual.language ? {} : words;
  }

  remove() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.element.remove();
  }

  problems(result) {
    showProblem(this.language, result.language);
    showProblem(this.source, result.source);
  }

  async run() {
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    this.button.disabled = true;
    this.stop.hidden = false;
    this.shown.replaceChildren(card("Report", make("p", { class: "soft" }, "Running …"))); // not what the last program did
    try {
      const result = await ask("kernel", { language: this.language.control.value, source: this.source.control.value }, request.signal);
      this.problems({});
      this.shown.replaceChildren(...cards(result));
      announce([...this.shown.querySelectorAll("h3, .pill")].map((each) => each.textContent).join(": "));
      if (isNarrow()) this.shown.scrollIntoView(); // it is below the program
    } catch (problem) {
      this.shown.replaceChildren();
      if (problem.name === "AbortError") this.hint();
      else this.problems({ [problem.field === "language" ? "language" : "source"]: problem.message });
    }
    this.element.removeAttribute("aria-busy");
    this.button.disabled = false;
    this.stop.hidden = true;
    this.changed();
  }
}

function cards(result) {
  const shown = [];
  if (result.error) shown.push(card("What stopped it", make("pre", { class: "problem plain", tabindex: "0", "aria-label": "What stopped it" }, result.error)));
  shown.push(...result.reports.map(report));
  if (result.launches > result.reports.length) shown.push(make("p", { class: "soft" }, `${result.launches - result.reports.length} more launches are not shown.`));
  if (!result.reports.length && !result.error) shown.push(card("Report", make("p", {}, "The program ran, and launched no kernel.")));
  if (result.unfenced && result.unfenced.length) shown.push(make("p", { class: "soft" }, `This system could not fence off ${result.unfenced.join("; ")}: here only the Mojo front end confines a program.`));
  if (result.output) shown.push(card("What it printed", make("pre", { class: "plain", tabindex: "0", "aria-label": "What it printed" }, result.output)));
  return shown;
}

function report(result) {
  const [name, launched = "its blocks", verdict = result.clean ? "no errors" : "errors"] = result.title.split(": "); // as in "reverse: 2 blocks of 16 threads: 1 error"
  return card(`Kernel ${name}`,
    make("p", { class: result.clean ? "pill good" : "pill bad" }, `${verdict[0].toUpperCase()}${verdict.slice(1)}`, make("span", {}, ` in ${launched}`)),
    ...result.defects.map(defect),
    result.scene ? scene({ ...result.scene, facts: [] }) : null,
    result.lines.length ? lines(result.lines) : null);
}

function defect({ severity, kind, message, remedy, witnesses }) {
  return make("div", { class: `defect ${severity}` },
    make("p", {}, make("b", {}, `${kind}: `), message),
    ...witnesses.map(({ text, source }) => make("p", { class: "witness" }, text, source ? make("code", {}, source) : null)),
    remedy ? make("p", { class: "soft" }, "Remedy: ", remedy) : null);
}

function lines(result) {
  const head = ["line", "source", "access", "how often", "cost"];
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What each line costs" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col", class: ["line", "how often"].includes(each) ? "number" : "" }, each)))),
    make("tbody", {}, ...result.map((row) => make("tr", {}, make("td", { class: "number" }, String(row.line)), make("td", {}, make("code", {}, row.source)),
      make("td", {}, row.action), make("td", { class: "number" }, String(row.accesses)), make("td", { class: row.ideal ? "" : "warn" }, row.cost))))));
}
