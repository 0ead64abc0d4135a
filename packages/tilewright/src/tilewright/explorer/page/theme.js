// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system says.

const KEPT = "tilewright-theme";
const THEMES = ["system", "light", "dark"];

/** Make a button go through the themes. */
export function themes(button) {
  let now = "system";
  try { now = localStorage.getItem(KEPT) || "system"; } catch { /* a browser that keeps nothing */ }
  const show = () => {
    if (now === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    button.textContent = { system: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[now];
  };
  if (!THEMES.includes(now)) now = "system";
  button.addEventListener("click", () => {
    now = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    try { localStorage.setItem(KEPT, now); } catch { /* as above */ }
    show();
  });
  show();
}
