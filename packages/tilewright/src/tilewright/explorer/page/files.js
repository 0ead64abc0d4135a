// SPDX-License-Identifier: Apache-2.0
// A file of this computer: its tensors, by its header, and how each would be placed on a chip.

import { askFile, engine, picture } from "./requests.js";
import { announce, card, make, sized, spaced } from "./dom.js";
import { factsOf, scene } from "./pictures.js";

const KINDS = ".safetensors,.gguf,.tensorbin,.npy";

/** Return a small checkpoint, made here: weights of zeros under the names of a Llama. */
function sampleFile() {
  const layer = "model.layers.0";
  const shapes = {
    "model.embed_tokens.weight": [1000, 256], [`${layer}.input_layernorm.weight`]: [256],
    [`${layer}.self_attn.q_proj.weight`]: [256, 256], [`${layer}.self_attn.k_proj.weight`]: [128, 256],
    [`${layer}.self_attn.v_proj.weight`]: [128, 256], [`${layer}.self_attn.o_proj.weight`]: [256, 256],
    [`${layer}.mlp.gate_proj.weight`]: [688, 256], [`${layer}.mlp.up_proj.weight`]: [688, 256], [`${layer}.mlp.down_proj.weight`]: [256, 688],
  };
  let end = 0;
  const header = Object.fromEntries(Object.entries(shapes).map(([name, shape]) => {
    const start = end;
    end += 2 * shape.reduce((product, extent) => product * extent, 1);
    return [name, { dtype: "BF16", shape, data_offsets: [start, end] }];
  }));
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new BigUint64Array([BigInt(text.length)]); // little-endian, as every browser's machine is
  return new File([length, text, new Uint8Array(end)], "sample.safetensors");
}

/** The tab of files; open(words) shows a tensor's placement in the tab of tensors. */
export class ChosenFile {
  constructor(open) {
    this.open = open;
    this.input = make("input", { type: "file", id: "chosen", class: "unseen", accept: KINDS, onchange: () => this.take(this.input.files[0]) });
    this.error = make("p", { class: "error", role: "alert", hidden: true });
    this.shown = make("div", { class: "plan", tabindex: "-1" });
    const target = make("label", { class: "drop", for: "chosen",
      ondragover: (event) => { event.preventDefault(); target.classList.add("over"); },
      ondragleave: () => target.classList.remove("over"),
      ondrop: (event) => { event.preventDefault(); target.classList.remove("over"); this.take(event.dataTransfer.files[0]); } },
      make("b", {}, "Drop a file here, or choose one"), make("span", {}, ".safetensors, .gguf, .tensorbin or .npy"), make("span", {}, engine.about));
    const example = make("button", { type: "button", class: "example", onclick: () => this.take(sampleFile()) }, "a layer of a small Llama");
    this.element = make("div", { class: "single" },
      make("div", { class: "card" }, this.input, target, make("p", { class: "soft examples" }, "No file at hand? Try ", example), this.error), this.shown);
  }

  problem(message) {
    this.error.hidden = !message;
    this.error.textContent = message;
  }

  async take(file) {
    if (!file) return;
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      this.show(await askFile(file, request.signal), file);
      this.problem("");
      announce(`${file.name}: ${this.shown.querySelectorAll("tbody tr").length} tensors are listed`);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.shown.replaceChildren();
      this.problem(problem.message);
    }
    if (this.request === request) this.element.removeAttribute("aria-busy");
    this.input.value = ""; // so that the same file can be chosen again
  }

  show(result, file) {
    this.tensor = make("div", { class: "plan" });
    const facts = [
      ["kind", result.kind], ["tensors", spaced(result.count)], ["size of the file", sized(file.size)], ["bytes of tensors", sized(result.bytes)],
      ...(result.padding ? [["padding", sized(result.padding)]] : []),
    ].map(([name, value]) => ({ name, value, tone: "plain" }));
    const entries = result.metadata.map(([name, value]) => ({ name, value, tone: "plain" }));
    this.shown.replaceChildren(
      card(file.name, factsOf(facts), this.table(result)),
      this.tensor,
      ...(result.scene ? [card("Bytes of the file", scene({ ...result.scene, facts: [] }))] : []),
      ...(entries.length ? [card("Metadata", factsOf(entries))] : []));
  }

  table(result) {
    const head = ["tensor", "shape", "format", "stored as", "bytes", "padding"];
    const row = (tensor) => make("tr", {},
      make("td", {}, make("button", { type: "button", class: "link", onclick: () => this.draw(tensor) }, tensor.name)),
      make("td", {}, tensor.shape), make("td", {}, tensor.format), make("td", {}, tensor.placed),
      make("td", { class: "number" }, spaced(tensor.bytes)), make("td", { class: "number" }, tensor.padding ? spaced(tensor.padding) : "–"));
    return make("div", {}, make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Tensors of the file" }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col", class: ["bytes", "padding"].includes(each) ? "number" : "" }, each)))),
      make("tbody", {}, ...result.tensors.map(row)))),
    result.count > result.tensors.length ? make("p", { class: "soft" }, `and ${spaced(result.count - result.tensors.length)} more`) : null);
  }

  /** Show one tensor: where its pages go. */
  async draw(tensor) {
    const parts = [make("p", { class: "soft" }, [tensor.problem, tensor.note].filter(Boolean).join(" "))];
    this.tensor.replaceChildren(card(tensor.name, ...parts));
    if (!tensor.words) return;
    this.element.setAttribute("aria-busy", "true");
    try {
      parts.push(scene(await picture("placement", tensor.words)));
    } catch (problem) {
      parts.push(make("p", { class: "problem" }, problem.message));
    }
    parts.push(make("p", {}, make("button", { type: "button", onclick: () => this.open(tensor.words) }, "Open in the tab Tensor")));
    this.tensor.replaceChildren(card(tensor.name, ...parts));
    this.element.removeAttribute("aria-busy");
    this.tensor.scrollIntoView({ block: "nearest" });
  }
}
