// SPDX-License-Identifier: Apache-2.0
// Python with tilewright: Pyodide from a snapshot of its memory, in which everything is imported already, or started anew.

import { loadPyodide } from "./pyodide.mjs";

const PAGE = 65536; // bytes by which the memory of WebAssembly grows

/** Return a maker of Pyodide's module that shows its memory to `seen` before anything runs in it. */
export const watched = (create, seen) => async (settings) => {
  const instantiate = settings.instantiateWasm;
  settings.instantiateWasm = (imports, receive) => instantiate(imports, (instance, module) => {
    seen(instance.exports.memory);
    receive(instance, module);
  });
  return (await create)(settings);
};

/** Return where the memory lies in a snapshot, behind a head that says how long it is. */
const memoryIn = (snapshot) => new Uint32Array(snapshot, new Uint32Array(snapshot, 0, 2)[1]);

/** Turn a snapshot into its difference from the memory at first, or back: what every module has need not be sent. */
export function differ(snapshot, first) {
  const [words, others] = [memoryIn(snapshot), new Uint32Array(first)];
  for (let at = 0; at < others.length; at += 1) words[at] ^= others[at];
}

/** Return Pyodide as it was when a snapshot was taken, without its files; `create` makes its module. */
export async function restore(difference, create, options) {
  let snapshot;
  const _loadSnapshot = difference.then((buffer) => {
    memoryIn(snapshot = buffer); // or there is none
    return new Uint8Array(buffer);
  });
  return loadPyodide({ ...options, _loadSnapshot, createPyodideModule: watched(create, (memory) => {
    differ(snapshot, memory.buffer);
    memory.grow(Math.max(0, Math.ceil((snapshot.byteLength - memory.buffer.byteLength) / PAGE)));
  }) });
}

/** Put the files of an archive where Python finds its packages. */
export function unpack(python, archive) {
  python.unpackArchive(archive, "zip", { extractDir: python.runPython("import site; site.getsitepackages()[0]") });
}

/** Unpack the modules that are not in the snapshot. */
export function complete(python, archive) {
  unpack(python, archive);
  python.runPython("import later_modules; later_modules.arrived()");
}

/** Return the status and the body of an answer, once the modules that it needs are there. */
export async function answer(python, modules, ask) {
  const engine = python.pyimport("tilewright.explorer.in_browser");
  for (;;) {
    try {
      const reply = ask(engine);
      const [status, body] = reply.toJs();
      reply.destroy();
      return { status, body };
    } catch (problem) {
      if (problem.type !== "NotHereYet") throw problem;
      await modules;
    }
  }
}
