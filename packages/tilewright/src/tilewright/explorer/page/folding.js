// SPDX-License-Identifier: Apache-2.0
// On a narrow screen a form folds under one line that says what it holds, so that the results are in sight.

import { make } from "./dom.js";

const narrow = matchMedia("(max-width: 860px)"); // as in style.css: there the form stands above its results
narrow.addEventListener("change", () => {
  for (const each of document.querySelectorAll(".fold")) each.open = !narrow.matches;
});

/** Return whether the form stands above its results, which may be out of sight. */
export const isNarrow = () => narrow.matches;

/** Return the parts of a form as one that folds; `line` says what it holds, and is filled by the caller. */
export function fold(line, ...children) {
  const summary = make("summary", {}, line, make("span", { class: "soft" }, " · change"));
  return make("details", { class: "fold", open: !narrow.matches }, summary, make("div", { class: "parts" }, ...children));
}
