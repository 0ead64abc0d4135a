// SPDX-License-Identifier: Apache-2.0
// The worker of the engine in the browser: it loads Pyodide and tilewright, then answers questions.

import { loadPyodide } from "./pyodide.mjs";

const FOLDER = "/chosen"; // where the file is mounted that somebody chose
const say = (loading) => postMessage({ loading });

const read = (name) => fetch(name).then((answer) => answer.arrayBuffer());

async function load() {
  const archive = read("tilewright.zip");
  const { numpy } = await fetch("playground.json").then((answer) => answer.json());
  const standIn = typeof numpy === "string" ? read(numpy) : null; // else packages of Pyodide's own
  const here = new URL("./", import.meta.url).href;
  const python = await loadPyodide({ indexURL: here, packageBaseUrl: here });
  say("Loading tilewright …");
  const [site] = python.runPython("import site; site.getsitepackages()").toJs();
  if (standIn) python.unpackArchive(await standIn, "zip", { extractDir: site });
  else await python.loadPackage(numpy, { messageCallback: () => {} });
  python.unpackArchive(await archive, "zip", { extractDir: site });
  const engine = python.pyimport("tilewright.explorer.in_browser");
  return { python, engine };
}

const loaded = load();

/** Let Python read a file of this computer: only the parts that it asks for are read. */
function mount(FS, file) {
  if (FS.analyzePath(FOLDER).exists) FS.unmount(FOLDER);
  else FS.mkdir(FOLDER);
  FS.mount(FS.filesystems.WORKERFS, { files: [file] }, FOLDER);
  return `${FOLDER}/${file.name}`;
}

addEventListener("message", async ({ data }) => {
  try {
    const { python, engine } = await loaded;
    const reply = data.file
      ? engine.answer_file(mount(python.FS, data.file))
      : engine.answer_fields(data.path, JSON.stringify(data.words));
    const [status, body] = reply.toJs();
    reply.destroy();
    postMessage({ status, body });
  } catch (problem) {
    postMessage({ status: 500, body: JSON.stringify({ error: `Python failed: ${problem.message}`, field: null }) });
  }
});

loaded.then(() => postMessage({ ready: true }), (problem) => postMessage({ failed: `Python could not be started: ${problem.message}` }));
