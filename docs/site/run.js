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
    isAside: element.closest("details") !== null,
    ran: false,
  }));

  const say = (block, text, pictures = []) => {
    const words = document.createElement("pre");
    words.textContent = text;
    block.output.replaceChildren(...(text ? [words] : []), ...pictures.map((svg) => {
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
      image.alt = "what the block drew";
      return image;
    }));
  };

  /** Let the reader change a block: without prompts and answers. */
  const open = ({ code }) => {
    if (code.isContentEditable) return;
    if (code.textContent.startsWith(">>>")) code.textContent = `${inputOf(code.textContent)}\n`;
    code.contentEditable = "plaintext-only";
    code.spellcheck = false;
  };

  const finish = (text, pictures) => {
    const block = running;
    running = null;
    block.button.textContent = "Run";
    say(block, text, pictures);
    block.output.dataset.state = "done";
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
    if (running) { if (running === block) stop("Stopped."); return; }
    open(block);
    running = block;
    block.button.textContent = "Stop";
    block.output.dataset.state = "running";
    say(block, worker ? "Running …" : "Loading Python, about 8 MB, once …");
    if (!worker) start();
    const before = blocks.slice(0, blocks.indexOf(block)).filter((other) => !other.ran && !other.isAside);
    const queue = [...before, block];
    for (const other of queue) other.ran = true;
    worker.postMessage({ folder, blocks: queue.map(({ file, code }) => ({ file, code: inputOf(code.textContent) || code.textContent })) });
  };

  const addButtons = () => {
    for (const block of blocks) {
      block.button = Object.assign(document.createElement("button"), { type: "button", className: "md-button run", textContent: "Run" });
      block.output = Object.assign(document.createElement("output"), { className: "run-output" });
      block.button.addEventListener("click", () => run(block));
      block.code.addEventListener("click", () => open(block), { once: true });
      block.code.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(block); }
        event.stopPropagation(); // letters are not the theme's shortcuts
      });
      block.element.after(block.button, block.output);
    }
  };

  fetch(new URL("playground/playground.json", site)).then((reply) => (reply.ok ? reply.json() : null)).then((facts) => {
    if (!facts) return;
    folder = new URL(`playground/${facts.version}/`, site).href;
    addButtons();
  }).catch(() => {});
})();
