// SPDX-License-Identifier: Apache-2.0
// Before anything is painted: the theme that was chosen, and whether the address asks for another picture than the page has.

(() => {
  const { dataset } = document.documentElement;
  try {
    const theme = localStorage.getItem("tilewright-theme");
    if (theme === "light" || theme === "dark") dataset.theme = theme;
  } catch { /* a browser that keeps nothing */ }
  if (location.hash.length > 1) dataset.linked = "yes";
  const say = (text) => addEventListener("DOMContentLoaded", () => {
    const trouble = document.getElementById("trouble");
    trouble.textContent = text;
    trouble.hidden = false;
  });
  if (location.protocol === "file:") say("A browser does not run a page from a file. Serve its folder: python3 -m http.server -d FOLDER");
})();
