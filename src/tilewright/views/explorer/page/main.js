// SPDX-License-Identifier: Apache-2.0
// The explorer: what the address says is shown, and what is shown goes back into the address.

import { ask, remember } from "./asking.js";
import { comparison } from "./compare.js";
import { make } from "./dom.js";
import { Notation } from "./notation.js";
import { read, written } from "./sharing.js";
import { Side } from "./side.js";
import { themes } from "./theme.js";

const at = (id) => document.getElementById(id);
const state = { view: "tensor", sides: [], notation: null, choices: null };

/** Put what is shown into the address, and compare if there are two, which look at the same element if both have it. */
function changed(side) {
  const [a, b] = state.sides;
  const other = side === a ? b : a;
  if (b && side?.chosen && other.chosen && other.chosen !== side.chosen && other.shape() === side.shape()) other.look({ at: side.chosen });
  const fragment = written({
    view: state.view, ...(state.view === "layout" ? { a: {}, notation: state.notation.words() } : { a: a.words(), b: b?.words() }),
  });
  history.replaceState(null, "", `#${fragment}`);
  at("comparison").hidden = !b || state.view !== "tensor";
  if (b) at("comparison").replaceChildren(...comparison(a, b));
  if (!at("sharing").hidden) share();
}

function show(view) {
  state.view = view;
  for (const name of ["tensor", "layout"]) at(`tab-${name}`).setAttribute("aria-pressed", String(name === view));
  at("sides").hidden = view !== "tensor";
  at("notation").hidden = view !== "layout";
  at("compare").hidden = view !== "tensor";
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
    state.sides.pop().element.remove();
    at("sides").dataset.count = 1;
    changed();
  }
  at("compare").setAttribute("aria-pressed", String(state.sides.length === 2));
}

function share() {
  const link = make("input", { type: "text", readonly: true, id: "link", "aria-label": "The link" });
  link.value = location.href;
  const copy = make("button", {
    type: "button",
    onclick: async () => {
      link.select();
      await navigator.clipboard?.writeText(link.value).catch(() => {});
      copy.textContent = "Copied";
    },
  }, "Copy link");
  at("sharing").replaceChildren(make("label", { for: "link" }, "This link shows the same again, on any machine where the explorer runs."),
    make("div", { class: "row" }, link, copy),
    make("p", { class: "soft" }, "Or start it there with: ", make("code", {}, `tilewright explore '#${new URL(link.value).hash.slice(1)}'`)));
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
      ? "This page needs the key of the explorer that is running: open the address that the terminal shows." : problem.message);
    return;
  }
  state.notation = new Notation(asked.notation, changed);
  at("notation").append(state.notation.element);
  const ready = [addSide("A", asked.a)];
  if (asked.b) ready.push(addSide("B", asked.b.shape === asked.a.shape ? { at: asked.a.at, ...asked.b } : asked.b));
  at("compare").setAttribute("aria-pressed", String(Boolean(asked.b)));
  at("tab-tensor").addEventListener("click", () => show("tensor"));
  at("tab-layout").addEventListener("click", () => show("layout"));
  at("compare").addEventListener("click", toggleCompare);
  at("share").addEventListener("click", () => {
    at("sharing").hidden = !at("sharing").hidden;
    at("share").setAttribute("aria-expanded", String(!at("sharing").hidden));
    if (!at("sharing").hidden) { share(); at("link").focus(); at("link").select(); }
  });
  show(asked.view);
  await Promise.all(ready);
  document.documentElement.dataset.ready = "yes";
}

// Not by the address, which says what is shown.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  at(state.view === "tensor" ? "sides" : "notation").focus();
});
// Somebody pasted another link into the address bar: show that.
window.addEventListener("hashchange", () => location.reload());
start();
