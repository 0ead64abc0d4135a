// SPDX-License-Identifier: Apache-2.0
// The worker of the engine in the browser: it brings Pyodide and tilewright, then answers questions.

import { answer, complete, restore, unpack } from "./browser_python.js";
import { loadPyodide } from "./pyodide.mjs";

const FOLDER = "/chosen"; // where the file is mounted that somebody chose
const STEP = 250_000; // bytes between two reports
const here = new URL("./", import.meta.url).href;
const options = { indexURL: here, packageBaseUrl: here };
const fetchPlainly = self.fetch.bind(self);
const instantiatePlainly = WebAssembly.instantiateStreaming;
const list = fetchPlainly(`${here}files.json`).then((reply) => reply.json()).catch(() => ({ first: 0 }));
let giveUp;
const hopeless = new Promise((_, reject) => { giveUp = reject; });
let isRestoring = true;
let [received, told] = [0, 0];

function count(piece, controller) {
  controller.enqueue(piece);
  received += piece.length;
  if (received - told < STEP) return;
  told = received;
  list.then(({ first }) => postMessage({ received, first }));
}

/** Say that a file is missing; what needs it waits for ever. */
function miss(name, status) {
  const why = status ? `is not there (status ${status}); the page may be a new one: reload it` : "did not arrive: check the connection, then reload the page";
  giveUp(new Error(`${name} ${why}`));
  return hopeless;
}

/** Return the reply with a file of this folder, counted as it arrives. */
async function bring(name) {
  const reply = await fetchPlainly(here + name).catch(() => null);
  if (!reply?.ok) return miss(name, reply?.status);
  const counted = reply.body.pipeThrough(new TransformStream({ transform: count }));
  const body = name.endsWith(".gz") ? counted.pipeThrough(new DecompressionStream("gzip")) : counted;
  return new Response(body, { headers: { "Content-Type": name.includes(".wasm") ? "application/wasm" : "application/octet-stream" } });
}

const read = async (name) => (await bring(name)).arrayBuffer();

// Pyodide fetches its parts by itself: let it have ours, of which some are packed. What is in the snapshot needs no library.
self.fetch = (address) => {
  const name = String(address.url ?? address).split("/").at(-1);
  if (isRestoring && name === "python_stdlib.zip") return Promise.resolve(new Response(""));
  return bring(name === "pyodide.asm.wasm" ? `${name}.gz` : name);
};
// It would wait for ever.
WebAssembly.instantiateStreaming = (...parts) => instantiatePlainly(...parts).catch((problem) => {
  giveUp(new Error(`this browser cannot run it (${problem.message}); try a newer one`));
  throw problem;
});

async function load() {
  const files = read("files.zip");
  const create = import("./pyodide.asm.mjs").then((module) => module.default, () => miss("pyodide.asm.mjs"));
  try {
    const python = await restore(read("snapshot.bin.gz"), create, options);
    unpack(python, await files);
    const modules = read("modules.zip").then((archive) => complete(python, archive));
    modules.catch(() => {}); // said to whoever needs them
    return { python, modules };
  } catch (problem) { // not every browser has the same things at the same places
    console.warn("The snapshot is of no use here:", problem);
    isRestoring = false;
    const python = await loadPyodide(options);
    unpack(python, await read("tilewright.zip"));
    return { python, modules: null };
  }
}

const loaded = Promise.race([hopeless, load()]);

/** Let Python read a file of this computer: only the parts that it asks for are read. */
function mount(FS, file) {
  if (FS.analyzePath(FOLDER).exists) FS.unmount(FOLDER);
  else FS.mkdir(FOLDER);
  FS.mount(FS.filesystems.WORKERFS, { files: [file] }, FOLDER);
  return `${FOLDER}/${file.name}`;
}

addEventListener("message", async ({ data }) => {
  try {
    const { python, modules } = await loaded;
    const ask = (engine) => (data.file ? engine.answer_file(mount(python.FS, data.file)) : engine.answer_fields(data.path, JSON.stringify(data.words)));
    postMessage(await answer(python, modules, ask));
  } catch (problem) {
    postMessage({ status: 500, body: JSON.stringify({ error: `Python failed: ${problem.message}`, field: null }) });
  }
});

loaded.then(() => postMessage({ ready: true }), (problem) => postMessage({ failed: `Python could not be started: ${problem.message}` }));
