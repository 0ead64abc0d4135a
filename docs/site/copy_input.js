// SPDX-License-Identifier: Apache-2.0
// The copy button of a session takes what one types: no prompt, no output. Other blocks are copied as they are.

function inputOf(text) {
  const lines = [];
  let goesOn = false; // a command that ends in a backslash continues on the next line
  for (const line of text.split("\n")) {
    const prompt = /^(?:>>>|\.\.\.|\$)(?: |$)/.exec(line);
    if (prompt && !goesOn) lines.push(line.slice(prompt[0].length));
    else if (goesOn) lines.push(line);
    goesOn = line.endsWith("\\") && (goesOn || line.startsWith("$ "));
  }
  return lines.join("\n"); // without the last line end, so that a pasted command waits for Enter
}

// Before the theme's own handler, which copies the attribute if there is one.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-clipboard-target]");
  const block = button && document.querySelector(button.dataset.clipboardTarget);
  const text = block ? block.textContent : "";
  if (/^(?:>>>|\$) /.test(text)) button.setAttribute("data-clipboard-text", inputOf(text));
}, true);
