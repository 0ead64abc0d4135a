// SPDX-License-Identifier: Apache-2.0
// Questions to the engine: a server on this machine, or tilewright in this browser. No other module knows which.

/** A question that was refused: the library's message, and the field it is about. */
export class Refusal extends Error {
  constructor(message, field, status) {
    super(message);
    this.field = field;
    this.status = status;
  }
}

const kind = document.querySelector("meta[name=tilewright-engine]").content;
const { Engine } = await import(kind === "browser" ? "./browser_engine.js" : "./server_engine.js");

/** The engine: its `about` says where files and kernels stay; `ask`, `askFile` and `stop` are all that it does. */
export const engine = new Engine(Refusal);

async function answered(reply) {
  const { status, body } = await reply;
  if (status === 200) return body;
  let refused = { error: `status ${status}`, field: null };
  try { refused = JSON.parse(body); } catch { /* not one of ours */ }
  throw new Refusal(refused.error, refused.field, status);
}

const filled = (words) => Object.fromEntries(Object.entries(words).filter(([, value]) => value !== "" && value !== null && value !== undefined));

/** Return the answer to a question in words, such as "placement" or "element". */
export const ask = async (name, words, signal) => JSON.parse(await answered(engine.ask(`answer/${name}`, filled(words), signal)));

/** Return a picture: its panels as SVG, with their data. */
export const picture = async (name, words, signal) => JSON.parse(await answered(engine.ask(`picture/${name}`, filled(words), signal)));

/** Return what the header of a file says. */
export const askFile = async (file, signal) => JSON.parse(await answered(engine.askFile(file, signal)));

const TYPES = { svg: "image/svg+xml", html: "text/html;charset=utf-8", json: "application/json" };

/** Return a picture as a file: svg, html or json. */
export const exported = async (name, suffix, words) => new Blob([await answered(engine.ask(`export/${name}.${suffix}`, filled(words)))], { type: TYPES[suffix] });
