// SPDX-License-Identifier: Apache-2.0
// Pictures from the server as elements. No parser of the browser sees their markup: even in an inert document it looks
// at event handlers and styles. Elements are built from what a drawing consists of; anything else is never made.

const SVG = "http://www.w3.org/2000/svg";
const TOKEN = /<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|([^<]+)/y;
const ATTRIBUTE = /([\w:-]+)="([^"]*)"/g;
const TAGS = /^(svg|g|path|rect|text|tspan|title|line|circle)$/;
const COLOURS = /^(fill|stroke)$/;
const COLOUR = /^#?\w+$/; // a colour by name or number, not one that is fetched from an address
const NAMES = new RegExp("^(aria-label|class|d|data-[a-z]+|font-(family|size|weight)|role|tabindex|text-anchor|transform|viewBox" +
  "|c?x[12]?|c?y[12]?|r[xy]?|width|height|(fill|stroke)(-opacity)?|stroke-(width|dasharray|linecap|linejoin))$");
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'", "#39": "'", apos: "'" };

const decode = (words) => words.replace(/&([\w#]+);/g, (entity, name) => ENTITIES[name] ?? entity);

function build(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [, name, value] of attributes.matchAll(ATTRIBUTE)) {
    if (NAMES.test(name) && (!COLOURS.test(name) || COLOUR.test(value))) element.setAttribute(name, decode(value));
  }
  return element;
}

/** Return a drawing as an SVG element: what is not drawing is left out with all that is in it, and so is what follows a mistake. */
export function drawing(markup) {
  const root = document.createDocumentFragment();
  const open = [root]; // the elements that have not ended yet; null stands for one that is left out
  const tokens = new RegExp(TOKEN); // with a position of its own
  for (let token; open.length && (token = tokens.exec(markup)); ) {
    const [, end, tag, attributes, alone, words] = token;
    const parent = open.at(-1);
    if (words) parent?.append(decode(words));
    else if (end) open.pop();
    else {
      const element = parent && TAGS.test(tag) ? build(tag, attributes) : null;
      if (element) parent.append(element);
      if (!alone) open.push(element);
    }
  }
  const first = root.firstElementChild;
  return first?.localName === "svg" ? first : build("svg", "");
}
