// SPDX-License-Identifier: Apache-2.0
// The engine on this machine: `tilewright explore`. The key came in the fragment of the address, and goes out as a header.

const STORED = "tilewright-key";
const MAX_QUERY = 6000; // characters of a query that still goes into the path
const MAX_BYTES = 64 * 2 ** 20; // of the start of a file
const HEADER = 8; // bytes that say how long the header of a safetensors file is

export class Engine {
  constructor(Refusal) {
    this.Refusal = Refusal;
    this.key = "";
    this.runsPython = false;
    this.stops = false; // the server ends what takes too long
    this.about = "The header is read by the tilewright that serves this page: the file stays on this computer.";
  }

  /** Remember the key of this run; without one, the key that this browser stored. */
  remember(given) {
    try {
      if (given) localStorage.setItem(STORED, given);
      this.key = given || localStorage.getItem(STORED) || "";
    } catch {
      this.key = given || this.key; // a browser that stores nothing still works until the page is closed
    }
  }

  async fetch(path, options) {
    try {
      const answer = await fetch(`api/${path}`, { ...options, headers: { "X-Tilewright-Key": this.key }, cache: "no-store", credentials: "omit" });
      return { status: answer.status, body: await answer.text() };
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw new this.Refusal("The explorer no longer answers; start it again with: tilewright explore", null, 0);
    }
  }

  ask(path, words, signal) {
    const query = new URLSearchParams(words).toString();
    return query.length > MAX_QUERY ? this.fetch(path, { signal, method: "POST", body: query }) : this.fetch(`${path}?${query}`, { signal });
  }

  /** Send the start of a file, as far as its header may go. */
  async askFile(file, signal) {
    let length = Math.min(file.size, MAX_BYTES);
    if (file.name.endsWith(".safetensors") && file.size > HEADER) {
      const start = new DataView(await file.slice(0, HEADER).arrayBuffer());
      length = Math.min(length, HEADER + Number(start.getBigUint64(0, true)));
    }
    const query = new URLSearchParams({ name: file.name, size: file.size });
    return this.fetch(`file?${query}`, { signal, method: "POST", body: file.slice(0, length) });
  }

  /** Say what the engine is doing; the server is quick, so it never says anything. */
  report() {}

  stop() {}
}
