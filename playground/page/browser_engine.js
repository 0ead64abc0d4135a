// SPDX-License-Identifier: Apache-2.0
// The engine in this browser: tilewright in Pyodide, in a worker, which answers one question after the other.

const SLOW = 3000; // milliseconds after which a question can be stopped
const here = new URL("./", import.meta.url);
const VERSION = here.pathname.split("/").at(-2); // the folder of these files
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
// The first questions were answered when the page was built, by the same code.
const known = fetch(new URL("first.json", here)).then((reply) => reply.json()).catch(() => ({}));
const missing = ["WebAssembly", "Worker", "DecompressionStream"].find((name) => !(name in globalThis));

/** Return a worker that loads Python, with what it has said so far. */
function startWorker() {
  const worker = new Worker(new URL("browser_worker.js", here), { type: "module" });
  worker.said = [];
  listen(worker, (data) => worker.said.push(data));
  return worker;
}

function listen(worker, receive) {
  worker.onmessage = ({ data }) => receive(data);
  worker.onerror = (event) => receive({ failed: event.message || "Python could not be started; reload the page" });
}

let started = missing ? null : startWorker(); // before the page has all of its scripts

export class Engine {
  constructor(Refusal) {
    this.Refusal = Refusal;
    this.runsPython = true;
    this.stops = true;
    this.about = "The file is read here, by this page, in your browser. It is not sent anywhere.";
    this.waiting = []; // questions that the worker has not got yet
    this.current = null;
    this.onStatus = this.onTrouble = () => {};
    this.start();
  }

  remember() {} // there is no key: nobody else can ask

  /** Call `onStatus(text, slow, share)` with what the engine is doing: "" for nothing, slow if it can be stopped; `onTrouble(message)` if it is broken. */
  report(onStatus, onTrouble) {
    this.onStatus = onStatus;
    this.onTrouble = onTrouble;
    onStatus(this.loading ?? "", false);
    if (this.broken) onTrouble(this.broken);
  }

  start() {
    this.ready = false;
    if (missing) {
      this.fail(`Python needs ${missing}, which this browser does not have, or has turned off. Turn it on, try another browser,`
        + " or install tilewright: pip install tilewright && tilewright explore");
      return;
    }
    this.say("Loading Python …");
    this.worker = started ?? startWorker();
    started = null;
    for (const data of this.worker.said) this.receive(data);
    listen(this.worker, (data) => this.receive(data));
  }

  say(text, share) {
    this.loading = text;
    this.onStatus(text, false, share);
  }

  receive(data) {
    if (data.received !== undefined) {
      if (this.ready && !this.current) return; // what follows is not waited for
      const whole = Math.max(data.first, data.received);
      this.say(`Loading Python: ${megabytes(data.received)} of ${megabytes(whole)} MB`, data.received / whole);
      return;
    }
    if (data.failed !== undefined) { this.fail(data.failed); return; }
    if (data.ready) {
      this.ready = true;
      keep();
    } else this.finish((question) => question.resolve(data));
    this.say("");
    this.next();
  }

  /** The worker is broken: everything that was asked fails. */
  fail(message) {
    this.say("");
    this.broken = message;
    this.onTrouble(message);
    const all = [this.current, ...this.waiting].filter(Boolean);
    this.current = null;
    this.waiting = [];
    for (const question of all) question.reject(new this.Refusal(message, null, 0));
  }

  finish(answer) {
    clearTimeout(this.timer);
    const question = this.current;
    this.current = null;
    if (question) answer(question);
  }

  next() {
    if (!this.ready || this.current || !this.waiting.length) return;
    const question = (this.current = this.waiting.shift());
    this.timer = setTimeout(() => this.onStatus("Python is still working on the last question.", true), SLOW);
    this.worker.postMessage(question.message);
  }

  put(message, signal) {
    return new Promise((resolve, reject) => {
      const aborted = () => new DOMException("another question was asked", "AbortError");
      if (signal?.aborted) { reject(aborted()); return; }
      if (this.broken) { reject(new this.Refusal(this.broken, null, 0)); return; }
      const question = { message, resolve, reject };
      signal?.addEventListener("abort", () => {
        this.waiting = this.waiting.filter((other) => other !== question);
        reject(aborted()); // one that the worker has is answered to nobody
      });
      this.waiting.push(question);
      this.next();
    });
  }

  async ask(path, words, signal) {
    const body = (await known)[JSON.stringify([path, words])];
    return body ? { status: 200, body } : this.put({ path, words }, signal);
  }

  askFile(file, signal) {
    return this.put({ path: "file", file }, signal);
  }

  /** End the worker with what it is doing, and start another. */
  stop() {
    this.worker.terminate();
    this.finish((question) => question.reject(new this.Refusal("Stopped.", null, 0)));
    this.start();
  }
}

/** Let the browser keep the page for the next visit, where it can. */
function keep() {
  navigator.serviceWorker?.register(new URL(`../service_worker.js?${VERSION}`, here)).catch(() => {}); // a visit without it is as good
}
