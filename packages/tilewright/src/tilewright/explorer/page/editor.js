// SPDX-License-Identifier: Apache-2.0
// An editor of programs: a text area, which edits, undoes and reads aloud as browsers do, over its lines in color and their
// numbers. Only the lines in sight are drawn.

import { make } from "./dom.js";
import { tokens } from "./highlight.js";

const INDENT = "    ";
const HINT = "Tab indents. To leave the program, press Escape, then Tab.";

export class Editor {
  /** An editor with an `id`; `changed` is called when somebody types, `run` at Ctrl+Enter. */
  constructor(id, label, changed, run) {
    this.run = run;
    this.marked = new Set();
    this.starts = [0]; // of the lines
    this.tokens = [];
    this.control = make("textarea", { id, name: "source", rows: "24", wrap: "off", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      oninput: () => { this.marked.clear(); this.stale ??= requestAnimationFrame(() => this.read()); changed(); }, onscroll: () => this.draw(), onkeydown: (event) => this.press(event),
      onblur: () => { this.leaving = false; } });
    this.numbers = make("div");
    this.lines = make("div");
    this.hint = make("p", { class: "soft", id: `${id}-hint` }, HINT);
    this.element = make("div", { class: "editor" }, make("div", { class: "gutter", "aria-hidden": "true" }, this.numbers),
      make("div", { class: "code" }, make("div", { class: "drawing", "aria-hidden": "true" }, this.lines), this.control));
    this.control.setAttribute("aria-describedby", this.hint.id);
    this.row = make("div", { class: "field" }, make("label", { for: id }, label), this.element, this.hint);
    new ResizeObserver(() => this.draw()).observe(this.control);
  }

  get value() { return this.control.value; }

  /** Show a program in a language, in place of the last. */
  show(source, language) {
    this.control.value = source;
    this.control.scrollTop = this.control.scrollLeft = 0;
    this.marked.clear();
    this.speak(language);
  }

  /** Color the program as one in another language. */
  speak(language) {
    this.language = language;
    this.read();
  }

  /** Mark lines, which are numbered from 1: something is wrong there. */
  mark(numbers) {
    this.marked = new Set(numbers);
    this.draw();
  }

  /** Find the lines and tokens of the program, and draw them. */
  read() {
    cancelAnimationFrame(this.stale); // a browser tells of each line that is put in: they are read together
    this.stale = null;
    const { value } = this;
    this.starts = [0];
    for (let at = value.indexOf("\n"); at >= 0; at = value.indexOf("\n", at + 1)) this.starts.push(at + 1);
    this.tokens = tokens(value, this.language);
    this.element.style.setProperty("--digits", String(this.starts.length).length);
    this.draw();
  }

  end(line) { return (this.starts[line + 1] ?? this.value.length + 1) - 1; }

  /** Return the height of a line and the space above the first; browsers round the one, so that all lines say more. */
  measure() {
    const style = getComputedStyle(this.control);
    const [top, line] = [parseFloat(style.paddingTop), parseFloat(style.lineHeight)];
    const { scrollHeight, clientHeight } = this.control;
    return { top, height: scrollHeight > clientHeight ? (scrollHeight - top - parseFloat(style.paddingBottom)) / this.starts.length : line };
  }

  draw() {
    if (!this.control.clientHeight) return; // in a tab that is not shown
    const { top, height } = this.measure();
    const { scrollTop, scrollLeft, clientHeight } = this.control;
    const first = Math.max(0, Math.floor((scrollTop - top) / height));
    const last = Math.min(this.starts.length, Math.ceil((scrollTop - top + clientHeight) / height));
    const down = top + first * height - scrollTop;
    this.numbers.style.transform = `translateY(${down}px)`;
    this.lines.style.transform = `translate(${-scrollLeft}px, ${down}px)`;
    const all = Array.from({ length: last - first }, (_, k) => first + k);
    const kind = (line) => ({ class: this.marked.has(line + 1) ? "marked" : "" });
    this.numbers.replaceChildren(...all.map((line) => make("div", kind(line), String(line + 1))));
    this.lines.replaceChildren(...all.map((line) => make("div", kind(line), ...this.colored(line))));
  }

  /** Return a line as text and colored spans. */
  colored(line) {
    const [start, end] = [this.starts[line], this.end(line)];
    const parts = [];
    let at = start;
    let [low, high] = [0, this.tokens.length]; // of the first token that ends in this line or later
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tokens[middle][1] <= start) low = middle + 1;
      else high = middle;
    }
    for (; low < this.tokens.length && this.tokens[low][0] < end; low += 1) {
      const [from, to, kind] = this.tokens[low];
      const [a, b] = [Math.max(from, start), Math.min(to, end)];
      parts.push(this.value.slice(at, a), make("span", { class: kind }, this.value.slice(a, b)));
      at = b;
    }
    return [...parts, this.value.slice(at, end)];
  }

  /** Go to a line and a column, from 1, and select the word there, or the whole line if there is no column. */
  jump(number, column) {
    if (this.stale) this.read();
    const line = Math.min(number, this.starts.length) - 1;
    const end = this.end(line);
    const indent = this.value.slice(this.starts[line], end).search(/\S|$/);
    const start = Math.min(end, this.starts[line] + (column ? column - 1 : indent));
    const word = column ? this.value.slice(start, end).match(/^(?:\w+|\W)/)?.[0].length : undefined;
    const { top, height } = this.measure();
    this.control.focus({ preventScroll: true });
    this.control.setSelectionRange(start, word ? start + word : end);
    this.control.scrollTop = top + line * height - this.control.clientHeight / 3;
    this.control.scrollLeft = 0;
    this.control.scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (key === "Enter" && (ctrlKey || metaKey)) {
      event.preventDefault();
      this.run();
    } else if (key === "Tab" && !this.leaving && !ctrlKey && !metaKey && !altKey) {
      event.preventDefault();
      this.indent(shiftKey);
    } else if (key === "Enter" && !event.isComposing) {
      event.preventDefault();
      const before = this.value.slice(this.value.lastIndexOf("\n", this.control.selectionStart - 1) + 1, this.control.selectionStart);
      this.type(`\n${before.match(/^[ \t]*/)[0]}${/:\s*(?:#.*)?$/.test(before) ? INDENT : ""}`);
    }
    if (key !== "Shift") this.leaving = key === "Escape";
  }

  /** Indent the lines of the selection, or take that back; at a caret, only go on to where the next one would be. */
  indent(back) {
    const { selectionStart: start, selectionEnd: end } = this.control;
    const from = this.value.lastIndexOf("\n", start - 1) + 1;
    const selected = this.value.slice(from, end);
    if (!back && start === end) {
      this.type(" ".repeat(INDENT.length - ((start - from) % INDENT.length)));
      return;
    }
    const lines = selected.split("\n").map((text) => (back ? text.replace(/^(?: {1,4}|\t)/, "") : text && INDENT + text));
    this.control.setSelectionRange(from, end);
    this.type(lines.join("\n"));
    const now = this.control.selectionEnd;
    this.control.setSelectionRange(start === end ? now : from, now);
  }

  /** Type a text over the selection, so that undo takes it back: there is no other command that does. */
  type(text) {
    if (text) document.execCommand("insertText", false, text);
    else document.execCommand("delete");
  }
}
