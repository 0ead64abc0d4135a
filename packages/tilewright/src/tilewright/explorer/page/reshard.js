// SPDX-License-Identifier: Apache-2.0
// A reshard: the tensor of spec A moves to another memory. Who sends what to whom, over which links, and how long.

import { ask, picture } from "./requests.js";
import { announce, card, make, sized, spaced } from "./dom.js";
import { exports } from "./exporting.js";
import { SAID, field, isSharded } from "./fields.js";
import { fold } from "./folding.js";
import { factsOf, scene } from "./pictures.js";
import { play } from "./player.js";
import { drawing } from "./svg.js";
import { code, unanswered } from "./verdict.js";

/** What is asked about the target, and when it matters. */
const TARGET = {
  memory: { label: "Memory layout", usual: "height_sharded", pick: true },
  buffer: { label: "Memory", usual: "l1", pick: true },
  grid: { label: "Cores, x by y", usual: "", hint: "all of them", when: isSharded },
  shard: { label: "Shard", usual: "", hint: "computed", when: isSharded },
  orientation: { label: "Orientation", usual: "row_major", pick: true, when: isSharded },
  distribution: { label: "Distribution", usual: "round_robin_1d", pick: true, when: (words) => words.memory === "nd_sharded" },
  op: { label: "Operation", usual: "to_memory_config", pick: true },
  kernel: { label: "Kernels", usual: "current", pick: true },
};
const ALONE = ["op", "kernel"]; // fields that the source does not have
const PAUSE = 160; // milliseconds of no typing before anything is asked

/** The view of a reshard; `changed` is called when it shows something else. */
export class Reshard {
  constructor(words, choices, changed) {
    this.changed = changed;
    this.rows = Object.fromEntries(Object.entries(TARGET).map(([name, about]) =>
      [name, field(ALONE.includes(name) ? name : `to_${name}`, about.label, words[name] ?? about.usual, about.pick && choices[name], about.hint, () => { this.relevant(); this.later(); })]));
    this.error = make("p", { class: "error", role: "alert", id: "error-reshard", hidden: true });
    const target = make("form", { class: "card target", "aria-label": "Target", onsubmit: (event) => event.preventDefault() },
      make("h2", {}, "Target"), this.fold = fold(this.line = make("span"), make("div", { class: "fields" }, ...Object.values(this.rows).map(({ row }) => row))), this.error);
    this.cost = make("div");
    this.cards = { flows: card("Flows on the chip"), links: card("Load of the links"), timeline: card("Timeline, as estimated") };
    for (const each of Object.values(this.cards)) each.hidden = true; // until there is something in it
    this.plan = make("div");
    this.python = make("div");
    this.results = make("div", { class: "plan", tabindex: "-1" }, this.cost, ...Object.values(this.cards), this.plan, this.python);
    this.element = make("section", { class: "reshard", "aria-label": "Reshard" }, make("div", { class: "right" }, target, this.results));
    this.relevant();
  }

  /** Show the form of the source beside that of the target. */
  place(source) {
    this.source = source;
    this.element.prepend(source.element);
  }

  typed() {
    return Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value.trim()]));
  }

  relevant() {
    const typed = this.typed();
    for (const [name, { row }] of Object.entries(this.rows)) row.hidden = !(TARGET[name].when ?? (() => true))(typed);
    const cores = isSharded(typed) && typed.grid ? ` on ${typed.grid} cores` : "";
    this.line.textContent = `${SAID[typed.memory]} in ${SAID[typed.buffer]}${cores}`;
  }

  /** Return what a link has to say about the target: what is not as usual, and what it is. */
  words() {
    const kept = Object.entries(this.typed()).filter(([name]) => !this.rows[name].row.hidden);
    return Object.fromEntries(kept.filter(([name, value]) => ["memory", "buffer"].includes(name) || value !== TARGET[name].usual));
  }

  /** Return the words of a question. */
  asked() {
    const to = Object.entries(this.typed()).filter(([name]) => !this.rows[name].row.hidden);
    return { ...this.source.words(), ...Object.fromEntries(to.map(([name, value]) => [ALONE.includes(name) ? name : `to_${name}`, value])) };
  }

  /** Take it off the page, and forget what was asked. */
  remove() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.element.remove();
  }

  later() {
    this.element.setAttribute("aria-busy", "true");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), PAUSE);
  }

  problem(message, name = null) {
    const own = Object.keys(this.rows).find((each) => (ALONE.includes(each) ? each : `to_${each}`) === name);
    const mine = Boolean(message) && own !== undefined;
    const marked = this.source.problem(mine ? "" : message, mine ? null : name) || mine;
    if (mine) this.fold.open = true;
    this.error.hidden = !mine;
    this.error.textContent = mine ? message : "";
    for (const [each, { control }] of Object.entries(this.rows)) {
      if (mine && each === own) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", this.error.id); }
      else { control.removeAttribute("aria-invalid"); control.removeAttribute("aria-describedby"); }
    }
    return marked;
  }

  async update() {
    clearTimeout(this.timer);
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      const words = this.asked();
      const result = await ask("reshard", words, request.signal);
      this.problem("");
      this.cost.replaceChildren(cost(result));
      this.plan.replaceChildren(...(result.empty ? [] : [facts(result)]));
      announce(result.empty ? "Nothing to do" : this.cost.querySelector(".numbers").textContent);
      this.python.replaceChildren(...(result.python ? [card("In Python", code(result.python))] : []));
      await Promise.all(Object.entries(this.cards).map(([name, place]) => this.draw(name, place, result, words, request.signal)));
      this.element.classList.remove("stale");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      const marked = this.problem(problem.message, problem.field);
      this.element.classList.add("stale");
      this.cost.replaceChildren(unanswered("Cost", "No plan", { message: problem.message, field: marked }));
    }
    if (this.request === request) this.element.removeAttribute("aria-busy");
    this.changed();
  }

  /** Return a button that plays the requests, round by round. */
  player(words) {
    const place = make("div");
    place.append(make("button", { type: "button", onclick: async () => {
      place.setAttribute("aria-busy", "true");
      try {
        place.replaceChildren(played(await ask("play", words)));
      } catch (problem) {
        place.replaceChildren(make("p", { class: "soft" }, problem.message));
      }
      place.removeAttribute("aria-busy");
    } }, "Play the requests"));
    return place;
  }

  /** Show a picture in its card, or say why there is none. */
  async draw(name, place, about, words, signal) {
    place.hidden = about.empty;
    if (about.empty) return;
    const parts = [place.firstElementChild];
    try {
      const drawn = await picture(name, words, signal);
      drawn.facts = drawn.facts.filter((fact) => !(fact.name in about.facts)); // which are shown above
      parts.push(scene(drawn), exports(name, () => this.asked(), (message) => this.problem(message)));
      if (name === "flows") parts.push(this.player(words));
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      parts.push(make("p", { class: "soft" }, problem.message));
    }
    place.replaceChildren(...parts);
  }
}

/** Return the frames of a reshard with a button and a slider. */
function played({ panels, frames }) {
  const svgs = panels.map(drawing);
  const controls = make("div", { class: "player" }, make("button", { type: "button" }, "Play"),
    make("input", { type: "range", "aria-label": "frame", min: "0", max: String(frames.paths.length - 1), value: "0" }), make("output"));
  const element = make("div", { class: "scene" }, controls, make("div", { class: "panels" }, ...svgs.map((svg) => make("figure", {}, svg))));
  play(svgs, frames.paths, frames.captions, controls, frames.seconds);
  return element;
}

const ABOVE = ["estimate", "bound by"]; // facts that the time says already, where it is known

/** Return the card that says what a reshard takes. */
function cost(result) {
  if (result.empty) return card("Cost", make("p", { class: "pill good" }, "Nothing to do"), make("p", {}, "Source and target are the same memory."));
  const { time } = result;
  return card("Cost",
    make("p", { class: result.fits ? "pill good" : "pill bad" }, result.fits ? "Fits" : "Does not fit", make("span", {}, ` ${result.chip}, with both tensors`)),
    make("p", { class: "numbers" },
      ...(time ? ["about ", make("b", {}, spaced(time.cycles)), ` cycles, ${time.microseconds.toPrecision(3)} us`, make("span", { class: "soft" }, ` · bound by ${time.bound}`)] : ["The time is not known for this chip."])),
    time ? make("p", { class: "soft" }, time.calibrated ? `An estimate, checked against ${time.worth}.` : `${time.worth[0].toUpperCase()}${time.worth.slice(1)}.`) : null,
    make("p", { class: "numbers" }, make("b", {}, sized(result.noc_bytes)), ` of ${sized(result.bytes)} cross the network`),
    ...result.warnings.map((warning) => make("p", { class: "problem" }, warning)));
}

/** Return the card that says what is done; the cost is told above. */
function facts(result) {
  const told = Object.entries(result.facts).filter(([name]) => !result.time || !ABOVE.includes(name));
  return card("Plan", factsOf(told.map(([name, value]) => ({ name, value, tone: "plain" }))));
}
