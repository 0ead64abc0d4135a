// SPDX-License-Identifier: Apache-2.0
// Run a session in Pyodide, as a page would, and print its answers and times as JSON:
//     node pyodide_session.mjs build/playground session.py

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, session] = process.argv.slice(2);
const times = {};
let last = performance.now();
function record(name) {
  const now = performance.now();
  times[name] = Math.round(now - last);
  last = now;
}

const { loadPyodide } = await import(pathToFileURL(path.resolve(folder, "pyodide.mjs")));
const { numpy } = JSON.parse(fs.readFileSync(path.join(folder, "playground.json")));
const python = await loadPyodide({ packageBaseUrl: `${path.resolve(folder)}/` });
record("load Pyodide");
const extractDir = python.runPython("import site; site.getsitepackages()[0]");
const unpack = (name) => python.unpackArchive(new Uint8Array(fs.readFileSync(path.join(folder, name))), "zip", { extractDir });
if (typeof numpy === "string") unpack(numpy);
else await python.loadPackage(numpy, { messageCallback: () => {} });
unpack("tilewright.zip");
record("unpack tilewright");
python.runPython("from tilewright.explorer.answers import placement_picture, render_for_page");
record("import the explorer");
python.runPython(`render_for_page(placement_picture({"shape": "256x192", "chip": "n150"}))`);
record("first picture");
python.FS.writeFile("session.py", fs.readFileSync(session));
const answers = python.runPython(`import sys; sys.path.insert(0, "."); import session; session.main([])`);
record("session");
console.log(JSON.stringify({ answers: JSON.parse(answers), times }));
