// SPDX-License-Identifier: Apache-2.0
// As much of a document as the page needs to draw a spec where there is no browser, and to be written as HTML.

const VOID = new Set(["input", "img", "br"]);
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const dashed = (name) => `data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

export class Element {
  constructor(tag) {
    this.localName = tag;
    this.attributes = new Map();
    this.childNodes = [];
    this.parentElement = null;
    this.value = "";
    this.style = {}; // the policy of the page allows none in HTML
    this.dataset = new Proxy({}, {
      get: (_, name) => this.attributes.get(dashed(name)),
      set: (_, name, value) => Boolean(this.setAttribute(dashed(name), value) ?? true),
    });
    const classes = () => new Set((this.attributes.get("class") ?? "").split(" ").filter(Boolean));
    const put = (names) => this.setAttribute("class", [...names].join(" "));
    this.classList = {
      add: (name) => put(classes().add(name)),
      remove: (name) => put([...classes()].filter((other) => other !== name)),
      toggle: (name, is) => (is ? this.classList.add(name) : this.classList.remove(name)),
    };
  }

  get children() { return this.childNodes.filter((child) => child instanceof Element); }
  get firstElementChild() { return this.children[0] ?? null; }
  get id() { return this.attributes.get("id"); }
  get hidden() { return this.attributes.has("hidden"); }
  set hidden(is) { this.toggleAttribute("hidden", is); }
  get textContent() { return this.childNodes.map((child) => child.textContent ?? child).join(""); }
  set textContent(text) { this.replaceChildren(text); }

  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  removeAttribute(name) { this.attributes.delete(name); }
  toggleAttribute(name, is) { if (is) this.setAttribute(name, ""); else this.removeAttribute(name); }
  addEventListener() {}

  append(...nodes) {
    for (const node of nodes) {
      node.remove?.();
      if (node instanceof Element) node.parentElement = this;
      this.childNodes.push(node instanceof Element ? node : String(node));
    }
  }

  replaceChildren(...nodes) {
    for (const child of this.children) child.parentElement = null;
    this.childNodes = [];
    this.append(...nodes);
  }

  remove() {
    if (this.parentElement) this.parentElement.childNodes = this.parentElement.childNodes.filter((other) => other !== this);
    this.parentElement = null;
  }

  /** Return the first descendant of a class. */
  querySelector(selector) {
    for (const child of this.children) {
      const found = (child.attributes.get("class") ?? "").split(" ").includes(selector.slice(1)) ? child : child.querySelector(selector);
      if (found) return found;
    }
    return null;
  }

  get outerHTML() {
    const tag = this.localName;
    const attributes = new Map(this.attributes);
    if (tag === "input" && this.value !== "") attributes.set("value", String(this.value));
    const chosen = tag === "select" && this.children.find((option) => option.attributes.get("value") === this.value);
    if (chosen) chosen.setAttribute("selected", "");
    const written = [...attributes].map(([name, value]) => (value === "" ? ` ${name}` : ` ${name}="${escaped(value)}"`)).join("");
    if (VOID.has(tag)) return `<${tag}${written}>`;
    const inside = this.childNodes.map((child) => (child instanceof Element ? child.outerHTML : escaped(child))).join("");
    return `<${tag}${written}>${inside}</${tag}>`;
  }
}

/** Return what the page's modules find in place of a browser: it asks `answer(path, words)`. */
export function browser(answer) {
  const byId = new Map();
  const element = (id) => byId.get(id) ?? byId.set(id, new Element("div")).get(id);
  class Worker {
    constructor() { this.say({ ready: true }); }
    say(data) { queueMicrotask(() => this.onmessage({ data })); }
    postMessage({ path, words }) { this.say(answer(path, words)); }
  }
  return {
    Worker,
    document: {
      createElement: (tag) => new Element(tag),
      createElementNS: (_, tag) => new Element(tag),
      createDocumentFragment: () => new Element("fragment"),
      getElementById: element,
      querySelector: () => ({ content: "browser" }),
    },
    matchMedia: () => ({ matches: false, addEventListener() {} }),
    navigator: {},
  };
}
