// SPDX-License-Identifier: Apache-2.0
// What is shown, in the fragment of the address: a link says everything, and sends nothing to anyone.

import { exampleNamed } from "./examples.js";

const MAX_FRAGMENT = 60000;
export const VIEWS = ["tensor", "layout", "reshard", "kernel", "file"];
const PARTS = ["b", "to", "layout", "kernel"]; // names with one of these and a dot before them are of that part

/** Return what an address shows: the key if it has one, the view, and the words of every part; `a` is the first spec. An
 * example that it names goes first. */
export function read(fragment) {
  const state = { key: "", view: "tensor", a: {}, b: null, to: {}, layout: {}, kernel: {} };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, "").slice(0, MAX_FRAGMENT))) {
    const [part, ...rest] = name.split(".");
    if (name === "key") state.key = value;
    else if (name === "example") {
      const { view, words } = exampleNamed(value);
      state.view = view;
      Object.assign(view === "tensor" ? state.a : state[view], words);
    }
    else if (name === "view") state.view = VIEWS.includes(value) ? value : "tensor";
    else if (name === "notation") state.layout.notation = value;
    else if (rest.length && PARTS.includes(part)) (state[part] ??= {})[rest.join(".")] = value;
    else state.a[name] = value;
  }
  return state;
}

/** Return the fragment that shows the same again. */
export function written({ view, a, ...parts }) {
  const pairs = view === "tensor" ? [] : [["view", view]];
  const { notation, ...layout } = parts.layout ?? {};
  if (notation) pairs.push(["notation", notation]);
  for (const [name, value] of Object.entries(a ?? {})) if (value) pairs.push([name, value]);
  for (const part of PARTS) {
    const words = part === "layout" ? layout : parts[part] ?? {};
    for (const [name, value] of Object.entries(words)) if (value) pairs.push([`${part}.${name}`, value]);
  }
  return new URLSearchParams(pairs).toString();
}
