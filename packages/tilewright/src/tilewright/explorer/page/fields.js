// SPDX-License-Identifier: Apache-2.0
// The fields of a spec: what can be typed or picked, which of them matter, and where a problem is shown.

import { make } from "./dom.js";
import { fold } from "./folding.js";

/** What each field is called, how it is filled at first, and when it matters. */
export const FIELDS = {
  shape: { label: "Shape", usual: "1x4x60x90", hint: "1x4x60x90", wide: true },
  dtype: { label: "Number format", usual: "bfloat8_b", pick: true },
  layout: { label: "Layout", usual: "tile", pick: true },
  tile: { label: "Tile", usual: "32x32", pick: true, when: (words) => words.layout !== "row_major" },
  memory: { label: "Memory layout", usual: "block_sharded", pick: true },
  buffer: { label: "Memory", usual: "l1", pick: true },
  grid: { label: "Cores, x by y", usual: "", hint: "all of them", when: isSharded },
  shard: { label: "Shard", usual: "", hint: "computed", when: isSharded },
  orientation: { label: "Orientation", usual: "row_major", pick: true, when: isSharded },
  distribution: { label: "Distribution", usual: "round_robin_1d", pick: true, when: (words) => words.memory === "nd_sharded" },
  chip: { label: "Chip", usual: "wormhole_n150", pick: true, wide: true },
  dispatch: { label: "Dispatch", usual: "fast", pick: true },
  circular: { label: "Circular buffers", usual: "", hint: "64KiB" },
  alignment: { label: "Alignment", usual: "", hint: "as the layout" },
  mesh: { label: "Mesh of devices", usual: "", hint: "one device" },
  cut: { label: "Cut along", usual: "", hint: "1, or -,1", when: isShared },
  device: { label: "Device", usual: "", hint: "0,0", when: isShared },
  label: { label: "Label of pages", usual: "", hint: "page" },
  color: { label: "Color of pages", usual: "", hint: "bank or shard" },
  base: { label: "Addresses", usual: "decimal", pick: true },
};
/** Return the words of a form that nobody has filled. */
export const usual = () => Object.fromEntries(Object.entries(FIELDS).map(([name, about]) => [name, about.usual]));

/** How choices are called, where it is not by their names. */
export const SAID = {
  row_major: "row major", col_major: "column major", tile: "tiles", interleaved: "interleaved", height_sharded: "height sharded",
  width_sharded: "width sharded", block_sharded: "block sharded", nd_sharded: "ND sharded", dram: "DRAM", l1: "L1",
  to_memory_config: "runtime's choice", interleaved_to_sharded: "interleaved to sharded", sharded_to_interleaved: "sharded to interleaved",
  current: "today's", 2024: "December 2024", hex: "hexadecimal", round_robin_1d: "round robin", grid_2d: "2D grid", contiguous_1d: "contiguous",
};
const GROUPS = [
  ["Tensor", ["shape", "dtype", "layout", "tile"]],
  ["Memory", ["memory", "buffer", "grid", "shard", "orientation", "distribution"]],
  ["Machine", ["chip", "dispatch", "circular", "alignment"]],
  ["Devices", ["mesh", "cut", "device"]],
  ["Picture", ["label", "color", "base"]],
];

/** Return whether shards are asked for, so that cores and their shapes matter. */
export function isSharded(words) {
  return words.memory !== "interleaved";
}

function isShared(words) {
  return Boolean(words.mesh);
}

/** Return a labelled field: a select where there are choices, else a line of text; `texts` says how choices are called. */
export function field(name, label, value, choices, hint, changed, texts = SAID) {
  const id = `${name}-${Math.random().toString(36).slice(2, 8)}`;
  const common = { id, name, oninput: changed };  // not onchange: leaving a field would draw everything again, under the hands of a reader
  let control;
  if (choices) {
    control = make("select", common, ...choices.map((choice) => make("option", { value: choice }, texts[choice] ?? choice)));
    control.value = choices.includes(value) ? value : choices[0];
  } else {
    control = make("input", { ...common, type: "text", autocomplete: "off", spellcheck: "false", placeholder: hint || "" });
    control.value = value;
  }
  return { control, row: make("div", { class: "field" }, make("label", { for: id }, label), control) };
}

/** Show a problem below a field, or none; a `hint` describes it in any case. */
export function showProblem({ control, row, hint }, message) {
  row.querySelector(".error")?.remove();
  control.toggleAttribute("aria-invalid", false);
  control.removeAttribute("aria-describedby");
  if (hint) control.setAttribute("aria-describedby", hint.id);
  if (!message) return;
  const id = `${control.id}-error`;
  row.append(make("p", { class: "error", role: "alert", id }, message));
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", hint ? `${hint.id} ${id}` : id);
}

/** The form of one spec, with a line of examples; `changed` is called whenever its words change. */
export class SpecForm {
  constructor(name, words, choices, changed, examples) {
    this.rows = {};
    this.error = make("p", { class: "error", role: "alert", id: `error-${name}`, hidden: true });
    const groups = GROUPS.map(([legend, names]) => make("fieldset", {}, make("legend", {}, legend), ...names.map((each) => {
      const about = FIELDS[each];
      const made = field(each, about.label, words[each] ?? about.usual, about.pick && choices[each], about.hint, () => {
        this.relevant();
        changed();
      });
      this.rows[each] = made;
      if (about.wide) made.row.classList.add("wide");
      return made.row;
    })));
    this.element = make("form", { class: "spec card", "aria-label": `Spec ${name}`, onsubmit: (event) => event.preventDefault() },
      make("h2", {}, make("span", { class: "letter" }, name), this.title = make("span", {}, "Spec")), examples, this.fold = fold(this.line = make("span"), ...groups), this.error);
    this.relevant();
  }

  /** Return what is typed and picked, as far as it matters. */
  words() {
    const typed = Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value.trim()]));
    return Object.fromEntries(Object.entries(typed).filter(([name]) => (FIELDS[name].when ?? (() => true))(typed)));
  }

  /** Fill the fields, leaving alone what is not said. */
  fill(words) {
    for (const [name, { control }] of Object.entries(this.rows)) {
      if (name in words) control.value = words[name];
      else if (name === "shard") control.value = "";
    }
    this.relevant();
  }

  /** Show the fields that matter. */
  relevant() {
    const typed = Object.fromEntries(Object.entries(this.rows).map(([name, { control }]) => [name, control.value]));
    for (const [name, { row }] of Object.entries(this.rows)) row.hidden = !(FIELDS[name].when ?? (() => true))(typed);
    const pages = typed.layout === "row_major" ? "in rows" : `in tiles of ${typed.tile}`;
    this.line.textContent = `${typed.shape} ${typed.dtype} ${pages}, ${SAID[typed.memory]} in ${SAID[typed.buffer]}, ${typed.chip}`;
  }

  /** Show a problem beside the field that it is about, or none; return whether there is such a field. */
  problem(message, name) {
    const own = name in this.rows;
    this.error.hidden = !message || !own;
    if (this.error.textContent !== message) this.error.textContent = message;
    if (message && own) this.fold.open = true;
    // Below the fields it is about, so that what is being typed into does not move.
    if (message && own) this.rows[name].row.parentElement.append(this.error);
    for (const [each, { control }] of Object.entries(this.rows)) {
      const guilty = Boolean(message) && each === name;
      control.toggleAttribute("aria-invalid", guilty);
      if (guilty) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", this.error.id); }
      else control.removeAttribute("aria-describedby");
    }
    return own;
  }
}
