// SPDX-License-Identifier: Apache-2.0
// Elements, made without any markup: what people or files are called is only ever text.

/** Return an element with attributes (on* are listeners) and children, which are elements or text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a card: a titled part of the page. */
export function card(title, ...children) {
  return make("section", { class: "card" }, make("h3", {}, title), ...children);
}

/** Tell what has changed to those who do not see it. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** Return 1536 as "1 536", the way it stays readable. */
export function spaced(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** Return bytes in a unit that people compare. */
export function sized(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
