// SPDX-License-Identifier: Apache-2.0
// Run a session in Pyodide, as a page would, and print its answers and times as JSON:
//     node pyodide_session.mjs FOLDER session.py snapshot|start
// FOLDER has what is in the folder of the playground, unpacked, and an empty file named "nothing".

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [given, session, how] = process.argv.slice(2);
const folder = path.resolve(given);
const times = {};
let last = performance.now();
function record(name) {
  const now = performance.now();
  times[name] = Math.round(now - last);
  last = now;
}

const bring = (name) => import(pathToFileURL(path.join(folder, name)));
const read = (name) => Uint8Array.from(fs.readFileSync(path.join(folder, name)));
const { loadPyodide } = await bring("pyodide.mjs");
const { restore, unpack, complete } = await bring("browser_python.js");
const create = bring("pyodide.asm.mjs").then((module) => module.default);
const python = how === "start" ? await loadPyodide()
  : await restore(Promise.resolve(read("snapshot.bin").buffer), create, { stdLibURL: path.join(folder, "nothing") });
record("load Pyodide");
unpack(python, read(how === "start" ? "tilewright.zip" : "files.zip"));
record("unpack");
python.runPython("from tilewright.explorer.in_browser import answer_fields");
record("import the explorer");
const first = {};
for (const question of Object.keys(JSON.parse(fs.readFileSync(path.join(folder, "first.json"))))) {
  const [name, words] = JSON.parse(question);
  python.globals.set("name", name);
  python.globals.set("words", JSON.stringify(words));
  first[question] = python.runPython("answer_fields(name, words)[1]");
}
record("first answers");
if (how === "snapshot") complete(python, read("modules.zip"));
record("unpack the other modules");
python.FS.writeFile("session.py", fs.readFileSync(session));
const answers = python.runPython(`import sys; sys.path.insert(0, "."); import session; session.main([])`);
record("session");
console.log(JSON.stringify({ answers: JSON.parse(answers), first, times }));
