// SPDX-License-Identifier: Apache-2.0
// The explorer: what the address says is shown, and what is shown goes back into the address.

import { ask, engine } from "./requests.js";
import { comparison } from "./compare.js";
import { announce, make } from "./dom.js";
import { ChosenFile } from "./files.js";
import { kernelTab } from "./kernels.js";
import { LayoutTab } from "./layouts.js";
import { Reshard } from "./reshard.js";
import { VIEWS, read, written } from "./sharing.js";
import { Side } from "./side.js";
import { themes } from "./theme.js";

const PLAYGROUND = "https://tilewright.github.io/tilewright/playground/";
const TYPING = 800; // milliseconds between changes that are steps of one, and not worth a place in the history
const NAME = document.title;
const at = (id) => document.getElementById(id);
const state = { view: "tensor", sides: [], reshard: null, layout: null, kernel: null, file: null, choices: null, quiet: true, jump: false, moved: 0 };

/** Put what is shown into the address, and compare if there are two, which look at the same element if both have it. */
function changed(side) {
  if (side && !state.sides.includes(side)) return; // it was replaced, and is answered late
  const [a, b] = state.sides;
  const other = side === a ? b : a;
  if (b && side?.chosen && other.chosen && other.chosen !== side.chosen && other.shape() === side.shape()) other.look({ at: side.chosen });
  remembered();
  at("comparison").hidden = !b || state.view !== "tensor";
  if (b) at("comparison").replaceChildren(...comparison(a, b));
  if (!at("sharing").hidden) share();
}

/** Return the fragment of what is shown. */
function shown() {
  const [a, b] = state.sides;
  const parts = {
    tensor: () => ({ a: a.words(), b: b?.words() }),
    reshard: () => ({ a: a.words(), to: state.reshard.words() }),
    layout: () => ({ layout: state.layout.words() }),
    kernel: () => ({ kernel: state.kernel.words() }),
    file: () => ({}), // what is in a file is nobody's business
  };
  return written({ view: state.view, ...parts[state.view]() });
}

/** The next change is a step in the history, however quickly it follows. */
const jump = () => { state.jump = true; };

/** Put what is shown into the address; the back button goes from change to change, not out of the page. */
function remembered() {
  const fragment = `#${shown()}`;
  if (fragment === location.hash) return;
  const now = Date.now();
  const step = state.quiet || (!state.jump && now - state.moved < TYPING);
  state.jump = false;
  if (!state.quiet) state.moved = now;
  history[step ? "replaceState" : "pushState"](null, "", fragment);
}

function show(view) {
  const [before, [side]] = [state.view, state.sides];
  state.view = view;
  for (const name of VIEWS) {
    const tab = at(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
    at(name).hidden = name !== view;
  }
  document.title = `${at(`tab-${view}`).textContent} · ${NAME}`;
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
  if (view === "tensor") for (const each of state.sides) if (!each.asked) each.update(); // not before anybody looks
  if (view === "kernel") state.kernel.open?.();
  if (view === "layout" && !state.layout.asked) state.layout.update();
  changed();
}

/** Somebody chose another tab: that is a step in the history. */
function choose(view) {
  jump();
  show(view);
}

/** Open a spec of another tab in the tab of tensors. */
function openTensor(words) {
  history.pushState(null, "", `#${written({ view: "tensor", a: words })}`);
  build({ ...read(""), a: words });
  scrollTo(0, 0);
}

function addSide(name, words) {
  const side = new Side(name, words, state.choices, changed);
  state.sides.push(side);
  at("sides").append(side.element);
  at("sides").dataset.count = state.sides.length;
  return side;
}

function toggleCompare() {
  if (state.sides.length === 1) {
    addSide("B", state.sides[0].words()).update();
  } else {
    state.sides.pop().remove();
    at("sides").dataset.count = 1;
    changed();
  }
  at("compare").setAttribute("aria-pressed", String(state.sides.length === 2));
}

/** Return a line that can be copied, with a button that does it. */
function copied(id, label, value) {
  const line = make("input", { type: "text", readonly: true, id, "aria-label": label,
    onfocus: () => { line.select(); line.scrollLeft = 0; } }); // the beginning is what people recognise
  line.value = value;
  const copy = make("button", {
    type: "button",
    onclick: async () => {
      line.focus();
      await navigator.clipboard?.writeText(line.value).catch(() => {});
      copy.textContent = "Copied";
      announce("Copied");
    },
  }, "Copy");
  return make("div", { class: "row" }, line, copy);
}

const command = (fragment) => `tilewright explore '#${fragment.replaceAll("'", "%27")}'`;

/** Offer what shows the same again: a link for anybody, and a command. Neither has the key. */
function share() {
  const fragment = shown();
  const page = engine.runsPython ? `${location.origin}${location.pathname}` : PLAYGROUND; // which is the playground itself
  at("sharing").replaceChildren(
    make("label", { for: "link" }, "This link opens the same view in any browser: the playground, with nothing to install."),
    copied("link", "The link", `${page}#${fragment}`),
    make("label", { for: "command" }, "This command opens it on a machine with tilewright."),
    copied("command", "The command", command(fragment)));
}

function trouble(message) {
  at("trouble").hidden = !message;
  at("trouble").textContent = message;
}

/** Say what the engine is doing and how much of it is done, and offer to stop what takes long. */
function progress(text, slow, share) {
  const [bar, line, stop] = at("progress").children;
  const phase = text.split(/:| …/)[0];
  if (at("progress").hidden !== !text || bar.ariaLabel !== phase) announce(phase); // once, not with every number
  at("progress").hidden = !text;
  bar.ariaLabel = phase;
  bar.hidden = share === undefined;
  bar.value = share ?? 0;
  line.textContent = text;
  stop.hidden = !slow;
}

async function start() {
  themes(at("theme"));
  engine.report(progress, trouble);
  at("progress").querySelector("button").addEventListener("click", () => engine.stop());
  const asked = read(location.hash);
  engine.remember(asked.key);
  if (asked.key) history.replaceState(null, "", `#${written(asked)}`); // the key is not for the history of the browser
  try {
    state.choices = await ask("choices", {});
  } catch (problem) {
    trouble(problem.status === 401
      ? "This page needs the key of the explorer that is running: open the address that the terminal shows, or start another"
        + ` with: ${command(written(asked))}` : problem.message);
    return;
  }
  for (const name of VIEWS) at(`tab-${name}`).addEventListener("click", () => choose(name));
  at("tab-tensor").parentElement.addEventListener("keydown", moveTab);
  at("compare").addEventListener("click", toggleCompare);
  at("share").addEventListener("click", () => {
    at("sharing").hidden = !at("sharing").hidden;
    at("share").setAttribute("aria-expanded", String(!at("sharing").hidden));
    if (!at("sharing").hidden) { share(); at("link").focus(); }
  });
  state.file = new ChosenFile(openTensor); // once: going back does not forget a file
  at("file").append(state.file.element);
  await build(asked);
  document.documentElement.dataset.ready = "yes";
}

/** Move from tab to tab with the arrow keys, as the pattern of tabs asks. */
function moveTab(event) {
  const last = VIEWS.length - 1;
  const now = VIEWS.indexOf(state.view);
  const next = { ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now === 0 ? last : now - 1, Home: 0, End: last }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  choose(VIEWS[next]);
  at(`tab-${VIEWS[next]}`).focus();
}

/** Show what an address says, in place of whatever is shown. */
async function build(asked) {
  state.quiet = true; // what the address says already is no step
  for (const side of state.sides) side.remove();
  for (const each of [state.layout, state.kernel, state.reshard]) each?.remove();
  state.sides = [];
  state.reshard = new Reshard(asked.to, state.choices, changed);
  at("reshard").append(state.reshard.element);
  state.layout = new LayoutTab(asked.layout, state.choices, () => changed(), jump);
  at("layout").append(state.layout.element);
  state.kernel = kernelTab(asked.kernel, state.choices, () => changed(), jump);
  at("kernel").append(state.kernel.element);
  addSide("A", asked.a);
  if (asked.b) addSide("B", asked.b.shape === asked.a.shape ? { at: asked.a.at, ...asked.b } : asked.b);
  at("compare").setAttribute("aria-pressed", String(Boolean(asked.b)));
  show(asked.view);
  const [side] = state.sides;
  await Promise.all(state.sides.map((each) => each.asked));
  await side.model.fill(asked.a);
  document.querySelector(".drawn")?.remove(); // the picture that the page came with: here is the same, alive
  state.quiet = false;
}

// Not by the address, which says what is shown.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  at(state.view).querySelector(".results, .plan").focus();
});
// Somebody went back, or pasted another link into the address bar: show that.
window.addEventListener("popstate", () => {
  const asked = read(location.hash);
  if (asked.key) location.reload();
  else if (state.choices) build(asked);
});
start();
