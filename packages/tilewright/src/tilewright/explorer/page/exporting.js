// SPDX-License-Identifier: Apache-2.0
// Pictures as files: SVG, one HTML file, or the scene as JSON.

import { exported } from "./requests.js";
import { make } from "./dom.js";

/** Return a row of buttons that save a picture; words() tells what it shows. */
export function exports(name, words, failed) {
  return make("div", { class: "exports" }, make("span", { class: "soft" }, "Save as"),
    ...["svg", "html", "json"].map((kind) => make("button", {
      type: "button", "aria-label": `Save ${name} as ${kind.toUpperCase()}`, "data-export": `${name}.${kind}`,
      onclick: async () => {
        try {
          save(await exported(name, kind, words()), `${name}.${kind}`);
        } catch (problem) {
          failed(problem.message);
        }
      },
    }, kind.toUpperCase())));
}

function save(blob, file) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: `tilewright-${file}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
