// SPDX-License-Identifier: Apache-2.0
// Do in advance what every visit would have to do again: compile Python's library and tilewright, import them, draw the
// first picture, and take a snapshot of the memory after that.
//     node prepare.mjs FOLDER
// FOLDER has Pyodide, python_stdlib.zip, tilewright.zip, later_modules.py and the page. It gets the compiled archives;
// snapshot.bin; files.zip and modules.zip, with what is not in the snapshot; first.json and first.html, the first answers.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { browser } from "./elements.mjs";

const folder = path.resolve(process.argv[2]);
const file = (name) => path.join(folder, name);
const load = (name) => import(pathToFileURL(file(name)));
const { loadPyodide } = await load("pyodide.mjs");
const { differ, watched } = await load("browser_python.js");


const compiler = await loadPyodide();
const here = "/prepared"; // a folder in its file system
compiler.FS.mkdir(here);
for (const name of ["python_stdlib.zip", "tilewright.zip"]) compiler.FS.writeFile(`${here}/${name}`, fs.readFileSync(file(name)));
compiler.FS.writeFile("/home/pyodide/prepare.py", fs.readFileSync(new URL("prepare.py", import.meta.url)));
const prepare = compiler.pyimport("prepare");
prepare.compile_archives(here);
const bring = (name) => fs.writeFileSync(file(name), compiler.FS.readFile(`${here}/${name}`));
bring("python_stdlib.zip");
bring("tilewright.zip");

// Nothing but what the page does happens in the memory of this one: the traces of all else would be in the snapshot.
let first;
const create = load("pyodide.asm.mjs").then((module) => module.default);
const python = await loadPyodide({ _makeSnapshot: true, createPyodideModule: watched(create, (memory) => { first = memory.buffer.slice(); }) });
for (const name of prepare.unpack(here)) {
  python.FS.mkdirTree(path.dirname(name));
  python.FS.writeFile(name, compiler.FS.readFile(name));
}
const engine = python.pyimport("tilewright.explorer.in_browser");
const answers = {};
function answer(question, words) {
  const [status, body] = engine.answer_fields(question, JSON.stringify(words)).toJs();
  if (status !== 200) throw new Error(`${question} ${JSON.stringify(words)}: ${body}`);
  answers[JSON.stringify([question, words])] = body;
  return { status, body };
}
Object.assign(globalThis, browser(answer), { fetch: () => Promise.reject(new Error("there is no network")) });
const [{ ask }, { Side }] = [await load("requests.js"), await load("side.js")];
const choices = await ask("choices", {});
await ask("kernel", { example: choices.kernels[0].name });
const side = new Side("A", {}, choices, () => {});
await side.update();
side.element.setAttribute("class", "side drawn");
side.element.setAttribute("inert", "");
fs.writeFileSync(file("first.html"), side.element.outerHTML);
fs.writeFileSync(file("first.json"), JSON.stringify(answers));

engine.destroy();
const later = prepare.split_archives(here, python.runPython("import sys; ' '.join(sys.modules)"));
bring("files.zip");
bring("modules.zip");
python.runPython(`import later_modules; later_modules.expect(frozenset("${later}".split())); later_modules.leave_library()`);
const snapshot = python.makeMemorySnapshot();
differ(snapshot.buffer, first);
fs.writeFileSync(file("snapshot.bin"), snapshot);
process.exit();
