// SPDX-License-Identifier: Apache-2.0
// A "Run" button below each Python block of tutorials, puzzles and questions. What runs it comes from the playground's folder
// of this site with the first press. Without the playground, or without scripts, pages stay as they are.

(() => {
  const site = new URL("../", document.currentScript.src);
  const RUNS = /\/(?:tutorials\/(?!serve-a-model)|questions\/|puzzles\.html)/; // that one needs commands
  if (!RUNS.test(location.pathname) || !location.protocol.startsWith("http") || !("DecompressionStream" in window)) return;

  let worker = null;
  let folder = null; // of the playground
  let running = null; // the block that is waited for
  const blocks = [...document.querySelectorAll("div.language-python, div.language-pycon")].map((element) => ({
    element,
    code: element.querySelector("code"),
    file: element.querySelector(".filename")?.textContent,
    isSolution: element.closest("details") !== null,
    button: Object.assign(document.createElement("button"), { type: "button", className: "md-button run", textContent: "Run" }),
    output: Object.assign(document.createElement("output"), { className: "run-output" }),
    ran: false,
  }));
  const typed = ({ code }) => inputOf(code.textContent) || code.textContent;

  const say = (block, state, text, pictures = []) => {
    const words = Object.assign(document.createElement("pre"), { textContent: text, hidden: !text });
    const images = pictures.map((svg) => Object.assign(new Image(), {
      src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, alt: "what the block drew" }));
    block.output.replaceChildren(words, ...images);
    block.output.dataset.state = state;
    block.button.textContent = state === "running" ? "Stop" : "Run";
  };

  /** Let the reader change a block: without prompts and answers. */
  const open = (block) => {
    if (block.code.isContentEditable) return;
    if (block.code.textContent.startsWith(">>>")) block.code.textContent = `${typed(block)}\n`;
    Object.assign(block.code, { contentEditable: "plaintext-only", spellcheck: false });
  };

  const finish = (text, pictures) => {
    say(running, "done", text, pictures);
    running = null;
  };

  const stop = (text) => {
    worker.terminate();
    worker = null;
    for (const block of blocks) block.ran = false;
    finish(text);
  };

  const start = () => {
    worker = new Worker(new URL("site/run_worker.js", site), { type: "module" });
    worker.onmessage = ({ data: { output, failed } }) => {
      if (failed) stop(failed);
      else finish(output.text || (output.pictures.length ? "" : "Ran; nothing to print."), output.pictures);
    };
    worker.onerror = (event) => stop(event.message || "Python could not be started; reload the page");
  };

  /** Run a block after those above it that have not run yet; the solutions of puzzles only if they are asked for. */
  const run = (block) => {
    if (running === block) stop("Stopped.");
    else if (!running) {
      open(block);
      running = block;
      say(block, "running", worker ? "Running …" : "Loading Python, about 12 MB, once …");
      if (!worker) start();
      const above = blocks.slice(0, blocks.indexOf(block)).filter((other) => !other.ran && !other.isSolution);
      for (const other of [...above, block]) other.ran = true;
      worker.postMessage({ folder, blocks: [...above, block].map((other) => ({ file: other.file, code: typed(other) })) });
    }
  };

  fetch(new URL("playground/playground.json", site)).then((reply) => (reply.ok ? reply.json() : null)).then((facts) => {
    if (facts) folder = new URL(`playground/${facts.version}/`, site).href;
    for (const block of facts ? blocks : []) {
      block.button.addEventListener("click", () => run(block));
      block.code.addEventListener("click", () => open(block), { once: true });
      block.code.addEventListener("keydown", (event) => {
        event.stopPropagation(); // letters are not the theme's shortcuts
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        run(block);
      });
      block.element.after(block.button, block.output);
    }
  }).catch(() => {});
})();
