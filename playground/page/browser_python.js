// SPDX-License-Identifier: Apache-2.0
// Python with tilewright: Pyodide from a snapshot of its memory, in which everything is imported already, or started anew.

import { loadPyodide } from "./pyodide.mjs";

const PAGE = 65536; // bytes by which the memory of WebAssembly grows

/** Return Pyodide as it was when a snapshot was taken, without its files; `create` makes its module. */
export async function restore(snapshot, create, options) {
  let bytes;
  const maker = async (settings) => {
    const instantiate = settings.instantiateWasm;
    settings.instantiateWasm = (imports, receive) => instantiate(imports, (instance, module) => {
      const { memory } = instance.exports; // too small for the snapshot
      memory.grow(Math.max(0, Math.ceil((bytes.length - memory.buffer.byteLength) / PAGE)));
      receive(instance, module);
    });
    return (await create)(settings);
  };
  const _loadSnapshot = snapshot.then((buffer) => (bytes = new Uint8Array(buffer)));
  return loadPyodide({ ...options, _loadSnapshot, createPyodideModule: maker });
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
