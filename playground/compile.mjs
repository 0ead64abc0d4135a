// SPDX-License-Identifier: Apache-2.0
// Compile the Python files of an archive with Pyodide itself, so that the page does not have to:
//     node compile.mjs FOLDER ARCHIVE

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, archive] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.resolve(folder, "pyodide.mjs")));
const python = await loadPyodide();
const file = path.join(folder, archive);
python.FS.mkdir("/archive");
python.unpackArchive(new Uint8Array(fs.readFileSync(file)), "zip", { extractDir: "/archive" });
python.runPython(`
import py_compile, site, zipfile
from pathlib import Path

root, here = Path("/archive"), site.getsitepackages()[0]  # where the page unpacks it
for path in root.rglob("*.py"):
    is_read = path.relative_to(root).parts[0] == "tilewright_mojo" or "mojo" in path.relative_to(root).parts  # the machine reads the source of functions that wait
    py_compile.compile(
        path, None if is_read else path.with_suffix(".pyc"), f"{here}/{path.relative_to(root)}", doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if not is_read:
        path.unlink()
with zipfile.ZipFile("/archive.zip", "w", zipfile.ZIP_DEFLATED) as packed:
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.parent.name != "page":  # which lies beside the archive
            packed.write(path, path.relative_to(root))
`);
fs.writeFileSync(file, python.FS.readFile("/archive.zip"));
