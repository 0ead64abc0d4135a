// SPDX-License-Identifier: Apache-2.0
// The explorer: what the address says is shown, and what is shown goes back into the address.

import { ask, remember } from "./asking.js";
import { comparison } from "./compare.js";
import { make } from "./dom.js";
import { Notation } from "./notation.js";
import { Reshard } from "./reshard.js";
import { read, written } from "./sharing.js";
import { Side } from "./side.js";
import { themes } from "./theme.js";

const at = (id) => document.getElementById(id);
const VIEWS = { tensor: "sides", reshard: "reshard", layout: "notation" }; // each with the element that shows it
const state = { view: "tensor", sides: [], reshard: null, notation: null, choices: null, quiet: true, moved: 0 };
const TYPING = 800; // milliseconds between changes that are steps of one, and not worth a place in the history

/** Put what is shown into the address, and compare if there are two, which look at the same element if both have it. */
function changed(side) {
  if (side && !state.sides.includes(side)) return; // it was replaced, and is answered late
  const [a, b] = state.sides;
  const other = side === a ? b : a;
  if (b && side?.chosen && other.chosen && other.chosen !== side.chosen && other.shape() === side.shape()) other.look({ at: side.chosen });
  const shown = {
    tensor: () => ({ a: a.words(), b: b?.words() }),
    reshard: () => ({ a: a.words(), to: state.reshard.words() }),
    layout: () => ({ a: {}, notation: state.notation.words(), drawn: state.notation.drawn() }),
  };
  const fragment = written({ view: state.view, ...shown[state.view]() });
  remembered(`#${fragment}`);
  at("comparison").hidden = !b || state.view !== "tensor";
  if (b) at("comparison").replaceChildren(...comparison(a, b));
  if (!at("sharing").hidden) share();
}

/** Put a fragment into the address; the back button goes from change to change, not out of the page. */
function remembered(fragment) {
  if (fragment === location.hash) return;
  const now = Date.now();
  const step = state.quiet || now - state.moved < TYPING;
  if (!state.quiet) state.moved = now;
  history[step ? "replaceState" : "pushState"](null, "", fragment);
}

function show(view) {
  const [before, [side]] = [state.view, state.sides];
  state.view = view;
  for (const [name, id] of Object.entries(VIEWS)) {
    at(`tab-${name}`).setAttribute("aria-pressed", String(name === view));
    at(id).hidden = name !== view;
  }
  at("compare").hidden = view !== "tensor";
  // The form of spec A is that of the source, too: it is on the page once, in the view that is shown.
  if (view === "reshard") {
    state.reshard.place(side.form);
    side.form.title.textContent = "Source";
    side.instead = () => state.reshard.later();
    state.reshard.update();
  } else if (side.instead) {
    side.instead = null;
    side.form.title.textContent = "Spec";
    side.element.prepend(side.form.element);
    if (before === "reshard" && view === "tensor") side.update();
  }
  if (view === "layout" && !state.notation.shown.firstChild) state.notation.update();
  changed();
}

function addSide(name, words) {
  const side = new Side(name, words, state.choices, changed);
  state.sides.push(side);
  at("sides").append(side.element);
  at("sides").dataset.count = state.sides.length;
  return side.update();
}

function toggleCompare() {
  if (state.sides.length === 1) {
    addSide("B", state.sides[0].words());
  } else {
    state.sides.pop().remove();
    at("sides").dataset.count = 1;
    changed();
  }
  at("compare").setAttribute("aria-pressed", String(state.sides.length === 2));
}

/** Return a line that can be copied, with a button that does it. */
function copied(id, label, value) {
  const line = make("input", { type: "text", readonly: true, id, "aria-label": label });
  line.value = value;
  const copy = make("button", {
    type: "button",
    onclick: async () => {
      line.select();
      await navigator.clipboard?.writeText(line.value).catch(() => {});
      copy.textContent = "Copied";
    },
  }, "Copy");
  return make("div", { class: "row" }, line, copy);
}

const command = (fragment) => `tilewright explore '#${fragment.replaceAll("'", "%27")}'`;

/** Offer what shows the same again: a command for anybody, and the address for this browser. Neither has the key. */
function share() {
  const fragment = location.hash.slice(1);
  at("sharing").replaceChildren(
    make("label", { for: "command" }, "This command opens the same view on any machine with tilewright."),
    copied("command", "The command", command(fragment)),
    make("label", { for: "link" }, "This link opens it in this browser while the explorer runs."),
    copied("link", "The link", `${location.origin}/#${fragment}`));
}

function trouble(message) {
  at("trouble").hidden = !message;
  at("trouble").textContent = message;
}

async function start() {
  themes(at("theme"));
  const asked = read(location.hash);
  remember(asked.key);
  if (asked.key) history.replaceState(null, "", `#${written(asked)}`); // the key is not for the history of the browser
  try {
    state.choices = await ask("choices", {});
  } catch (problem) {
    trouble(problem.status === 401
      ? "This page needs the key of the explorer that is running: open the address that the terminal shows, or start another"
        + ` with: ${command(written(asked))}` : problem.message);
    return;
  }
  at("tab-tensor").addEventListener("click", () => show("tensor"));
  at("tab-reshard").addEventListener("click", () => show("reshard"));
  at("tab-layout").addEventListener("click", () => show("layout"));
  at("compare").addEventListener("click", toggleCompare);
  at("share").addEventListener("click", () => {
    at("sharing").hidden = !at("sharing").hidden;
    at("share").setAttribute("aria-expanded", String(!at("sharing").hidden));
    if (!at("sharing").hidden) { share(); at("command").focus(); at("command").select(); }
  });
  await build(asked);
  document.documentElement.dataset.ready = "yes";
}

/** Show what an address says, in place of whatever is shown. */
async function build(asked) {
  state.quiet = true; // what the address says already is no step
  for (const side of state.sides) side.remove();
  state.notation?.element.remove();
  state.reshard?.remove();
  state.sides = [];
  state.reshard = new Reshard(asked.to, state.choices, changed);
  at("reshard").append(state.reshard.element);
  state.notation = new Notation(asked.notation, asked.drawn, changed);
  at("notation").append(state.notation.element);
  const ready = [addSide("A", asked.a)];
  if (asked.b) ready.push(addSide("B", asked.b.shape === asked.a.shape ? { at: asked.a.at, ...asked.b } : asked.b));
  at("compare").setAttribute("aria-pressed", String(Boolean(asked.b)));
  show(asked.view);
  await Promise.all(ready);
  state.quiet = false;
}

// Not by the address, which says what is shown.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  at(VIEWS[state.view]).focus();
});
// Somebody went back, or pasted another link into the address bar: show that.
window.addEventListener("popstate", () => {
  const asked = read(location.hash);
  if (asked.key) location.reload();
  else if (state.choices) build(asked);
});
start();
