// SPDX-License-Identifier: Apache-2.0
// Kernels: a program in Mojo or Python, run thread by thread when somebody asks for it, and what is wrong with it.

import { ask, engine } from "./requests.js";
import { announce, card, make } from "./dom.js";
import { Editor } from "./editor.js";
import { field, showProblem } from "./fields.js";
import { isNarrow } from "./folding.js";
import { scene } from "./pictures.js";

const NAMES = { mojo: "Mojo", python: "Python" };

/** Return the tab of kernels, or what stands there if the engine has nothing to run them with. */
export const kernelTab = (words, choices, changed, leapt) => (choices.kernels ? new Kernel(words, choices, changed, leapt) : new NoKernels(words));

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

/** The tab of kernels; `changed` is called when the program is another, `leapt` before that is a step in the history.
 * Nothing runs by itself: links are not trusted. */
class Kernel {
  constructor(words, choices, changed, leapt) {
    this.changed = changed;
    this.leapt = leapt;
    this.given = words;
    this.first = choices.kernels[0].name;
    this.language = field("language", "Language", words.language ?? "mojo", choices.language, "", () => { this.editor.speak(this.language.control.value); changed(); }, NAMES);
    this.editor = new Editor("kernel-source", "Program", () => this.later(), () => this.run());
    this.button = make("button", { type: "submit", class: "primary" }, "Run");
    this.stop = make("button", { type: "button", hidden: true, onclick: () => { this.request?.abort(); if (engine.stops) engine.stop(); } }, "Stop");
    this.solve = make("button", { type: "button", hidden: true, onclick: () => this.fill({ ...this.example, source: this.example.solution }) }, "Show a solution");
    const button = ({ name, title, language }) => make("button", { type: "button", class: "example", onclick: () => this.take(name) }, language === "python" ? `${title} (Python)` : title);
    this.shown = make("div", { class: "plan", tabindex: "-1" });
    this.element = make("div", { class: "kernel" },
      make("form", { class: "card", "aria-label": "Kernel", onsubmit: (event) => { event.preventDefault(); this.run(); } },
        make("p", { class: "soft examples" }, "Try ", ...choices.kernels.map(button)),
        make("p", { class: "soft examples" }, "Puzzles ", ...choices.puzzles.map(button)), this.editor.row,
        make("div", { class: "row" }, this.language.row, this.button, this.stop, this.solve),
        make("p", { class: "soft" }, "It runs here, thread by thread, without a GPU, once you press Run (or Ctrl+Enter).")),
      this.shown);
    this.hint();
  }

  /** Show the program of the link, or an example: it is on the page now. */
  open() {
    if (this.opened) { this.editor.draw(); return; }
    this.opened = true;
    if (this.given.source) this.fill({ language: this.language.control.value, source: this.given.source });
    else this.load(this.given.example || this.first);
  }

  hint() {
    this.shown.replaceChildren(card("Report", make("p", { class: "soft" }, "Press Run: races, barriers that not all threads reach, reads of memory without values, accesses out of bounds and bank conflicts are shown here, with who touched what.")));
  }

  /** Somebody chose an example. */
  take(name) {
    this.leapt();
    this.load(name);
  }

  load(name) {
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    this.loading = ask("kernel", { example: name }, request.signal).then((example) => {
      this.example = { name, ...example };
      this.fill(example);
    }).catch((problem) => {
      if (problem.name !== "AbortError") this.problems({ source: problem.message });
    }).finally(() => { if (this.request === request) this.element.removeAttribute("aria-busy"); });
  }

  /** Show a program in place of the last. */
  fill({ language, source }) {
    this.language.control.value = language;
    this.editor.show(source, language);
    this.solve.hidden = !this.example?.solution || this.example.solution === source;
    this.hint();
    this.problems({});
    this.changed();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed(), 400);
  }

  /** Return what a link says: the program, or the name of the example that it is, unless that is the first. */
  words() {
    const words = { language: this.language.control.value, source: this.editor.value };
    if (!words.source) return this.given;
    const { name, source, language } = this.example ?? {};
    if (words.source !== source || words.language !== language) return words;
    return name === this.first ? {} : { example: name };
  }

  remove() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.element.remove();
  }

  problems(result) {
    showProblem(this.language, result.language);
    showProblem(this.editor, result.source);
  }

  async run() {
    await this.loading;
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    this.button.disabled = true;
    this.stop.hidden = false;
    this.shown.replaceChildren(card("Report", make("p", { class: "soft" }, "Running …"))); // not what the last program did
    try {
      const result = await ask("kernel", { language: this.language.control.value, source: this.editor.value }, request.signal);
      this.problems({});
      this.editor.mark(guilty(result));
      this.shown.replaceChildren(...cards(result, (line, column) => this.editor.jump(line, column)));
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

const PLACE = /\bline (\d+)(?::(\d+))?/g;

/** Return a text in pieces: each place in the program that it names is a button, which jumps there. */
function places(text, jump) {
  const parts = [];
  let at = 0;
  for (const { 0: place, 1: line, 2: column, index } of text.matchAll(PLACE)) {
    parts.push(text.slice(at, index), make("button", { type: "button", class: "link", onclick: () => jump(Number(line), Number(column ?? 0)) }, place));
    at = index + place.length;
  }
  return [...parts, text.slice(at)];
}

/** Return the lines at which something is wrong: where the program stopped, and where its errors are. */
function guilty(result) {
  const texts = result.reports.flatMap(({ defects }) => defects.filter(({ severity }) => severity === "error").flatMap(({ witnesses }) => witnesses.map(({ text }) => text)));
  return [result.error ?? "", ...texts].flatMap((text) => [...text.matchAll(PLACE)].map(([, line]) => Number(line)));
}

function cards(result, jump) {
  const shown = [];
  if (result.error) shown.push(card("What stopped it", make("pre", { class: "problem plain", tabindex: "0", "aria-label": "What stopped it" }, ...places(result.error, jump))));
  shown.push(...result.reports.map((each) => report(each, jump)));
  if (result.launches > result.reports.length) shown.push(make("p", { class: "soft" }, `${result.launches - result.reports.length} more launches are not shown.`));
  if (!result.reports.length && !result.error) shown.push(card("Report", make("p", {}, "The program ran, and launched no kernel.")));
  if (result.unfenced && result.unfenced.length) shown.push(make("p", { class: "soft" }, `This system could not fence off ${result.unfenced.join("; ")}: here only the Mojo front end confines a program.`));
  if (result.output) shown.push(card("What it printed", make("pre", { class: "plain", tabindex: "0", "aria-label": "What it printed" }, result.output)));
  return shown;
}

function report(result, jump) {
  const [name, launched = "its blocks", verdict = result.clean ? "no errors" : "errors"] = result.title.split(": "); // as in "reverse: 2 blocks of 16 threads: 1 error"
  return card(`Kernel ${name}`,
    make("p", { class: result.clean ? "pill good" : "pill bad" }, `${verdict[0].toUpperCase()}${verdict.slice(1)}`, make("span", {}, ` in ${launched}`)),
    ...result.defects.map((each) => defect(each, jump)),
    result.scene ? scene({ ...result.scene, facts: [] }) : null,
    result.lines.length ? lines(result.lines, jump) : null);
}

function defect({ severity, kind, message, remedy, witnesses }, jump) {
  return make("div", { class: `defect ${severity}` },
    make("p", {}, make("b", {}, `${kind}: `), ...places(message, jump)),
    ...witnesses.map(({ text, source }) => make("p", { class: "witness" }, ...places(text, jump), source ? make("code", {}, source) : null)),
    remedy ? make("p", { class: "soft" }, "Remedy: ", remedy) : null);
}

function lines(result, jump) {
  const head = ["line", "source", "access", "how often", "cost"];
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What each line costs" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col", class: ["line", "how often"].includes(each) ? "number" : "" }, each)))),
    make("tbody", {}, ...result.map((row) => make("tr", {}, make("td", { class: "number" }, make("button", { type: "button", class: "link", onclick: () => jump(row.line, 0) }, String(row.line))), make("td", {}, make("code", {}, row.source)),
      make("td", {}, row.action), make("td", { class: "number" }, String(row.accesses)), make("td", { class: row.ideal ? "" : "warn" }, row.cost))))));
}
