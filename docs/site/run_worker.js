// SPDX-License-Identifier: Apache-2.0
// Python for the blocks of a page: the Pyodide and the tilewright of the playground, whose folder the first message names.

let python;
const fetchPlainly = self.fetch.bind(self);

/** Return a file of the playground; Pyodide waits for ever for one that does not come, so say so. */
async function bring(address) {
  const reply = await fetchPlainly(address).catch(() => null);
  if (!reply?.ok) postMessage({ failed: `${address.split("/").at(-1)} is not there: reload the page` });
  return reply;
}

async function load(folder) {
  self.fetch = async (address) => {
    const name = String(address.url ?? address).split("/").at(-1);
    if (name !== "pyodide.asm.wasm") return bring(folder + name);
    const { body } = await bring(`${folder}${name}.gz`);
    return new Response(body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
  };
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const made = await loadPyodide({ indexURL: folder, packageBaseUrl: folder });
  const packages = made.runPython("import site; site.getsitepackages()[0]");
  made.unpackArchive(await (await bring(`${folder}tilewright.zip`)).arrayBuffer(), "zip", { extractDir: packages });
  made.FS.writeFile(`${packages}/cell.py`, await (await bring(new URL("cell.py", import.meta.url).href)).text());
  return made.pyimport("cell");
}

addEventListener("message", async ({ data }) => {
  try {
    python ??= load(data.folder);
    const cell = await python;
    const outputs = data.blocks.map(({ file, code }) => JSON.parse(file ? cell.save(file, code) : cell.run(code)));
    postMessage({ output: outputs.at(-1) });
  } catch (problem) {
    postMessage({ failed: `Python could not run this: ${problem.message}` });
  }
});
