// SPDX-License-Identifier: Apache-2.0
// What is shown, in the fragment of the address: a link says everything, and sends nothing to anyone.

const LONGEST = 6000;

/** Return what an address shows: the key if it has one, the view, and the words of both sides. */
export function read(fragment) {
  const found = { key: "", view: "tensor", a: {}, b: null, to: {}, notation: "", drawn: {} };
  const given = new URLSearchParams(fragment.replace(/^#/, "").slice(0, LONGEST));
  for (const [name, value] of given) {
    if (name === "key") found.key = value;
    else if (name === "view") found.view = ["layout", "reshard"].includes(value) ? value : "tensor";
    else if (name === "notation") found.notation = value;
    else if (name.startsWith("layout.")) found.drawn[name.slice(7)] = value;
    else if (name.startsWith("to.")) found.to[name.slice(3)] = value;
    else if (name.startsWith("b.")) (found.b ??= {})[name.slice(2)] = value;
    else found.a[name] = value;
  }
  return found;
}

/** Return the fragment that shows the same again. */
export function written({ view, a, b, to, notation, drawn }) {
  const pairs = [];
  if (view !== "tensor") pairs.push(["view", view]);
  if (notation) pairs.push(["notation", notation]);
  for (const [name, value] of Object.entries(drawn ?? {})) if (value) pairs.push([`layout.${name}`, value]);
  for (const [name, value] of Object.entries(a)) if (value) pairs.push([name, value]);
  for (const [name, value] of Object.entries(to ?? {})) if (value) pairs.push([`to.${name}`, value]);
  for (const [name, value] of Object.entries(b ?? {})) if (value) pairs.push([`b.${name}`, value]);
  return new URLSearchParams(pairs).toString();
}
