// SPDX-License-Identifier: Apache-2.0
// Questions to the server on this machine. The key came in the fragment of the address, and goes out as a header.

const KEPT = "tilewright-key";
let key = "";

/** A question that was refused: the library's message, and the field it is about. */
export class Refusal extends Error {
  constructor(message, field, status) {
    super(message);
    this.field = field;
    this.status = status;
  }
}

/** Remember the key of this run; without one, the key that this browser kept. */
export function remember(given) {
  try {
    if (given) localStorage.setItem(KEPT, given);
    key = given || localStorage.getItem(KEPT) || "";
  } catch {
    key = given || key; // a browser that keeps nothing still works until the page is closed
  }
}

async function fetched(path, words, signal) {
  const asked = Object.entries(words).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  let answer;
  try {
    answer = await fetch(`ask/${path}?${new URLSearchParams(asked)}`, {
      signal, headers: { "X-Tilewright-Key": key }, cache: "no-store", credentials: "omit",
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refusal("The explorer no longer answers; start it again with: tilewright explore", null, 0);
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({ error: `status ${answer.status}`, field: null }));
    throw new Refusal(told.error, told.field, answer.status);
  }
  return answer;
}

/** Return the answer to a question in words, such as "placement" or "element". */
export const ask = async (name, words, signal) => (await fetched(`words/${name}`, words, signal)).json();

/** Return a picture: its panels as SVG, with their data. */
export const picture = async (name, words, signal) => (await fetched(`picture/${name}`, words, signal)).json();

/** Return a picture as a file: svg, html or json. */
export const exported = async (name, kind, words) => (await fetched(`export/${name}.${kind}`, words)).blob();
