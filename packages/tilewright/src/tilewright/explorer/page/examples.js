// SPDX-License-Identifier: Apache-2.0
// Examples of tensors and layouts. Each has a link, #example=NAME, which pages about its subject use: names stay. The
// kernels' are their companion's.

import { make } from "./dom.js";

// Llama 3.1 8B, as far as its caches and weights depend on it.
const LLAMA = {
  model_type: "llama", hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8,
  head_dim: 128, vocab_size: 128256, max_position_embeddings: 131072, tie_word_embeddings: false,
};
const LISTS = {
  tensor: {
    "kv-cache": { title: "a KV cache", shape: "32x8x1024x128", dtype: "bfloat8_b", memory: "interleaved", buffer: "dram", users: "8", context: "8192", config: JSON.stringify(LLAMA, null, 1) },
    "circular-buffers-clash": { title: "circular buffers clash", shape: "1x1x4096x2048", dtype: "bfloat16", memory: "height_sharded", buffer: "l1", grid: "8x8", circular: "1300KiB" },
    "tensor-accessor": { title: "what a TensorAccessor computes", shape: "1x256x256", dtype: "bfloat16", memory: "nd_sharded", buffer: "dram", shard: "1x64x64", label: "page, bank, address", at: "0,100,70" },
  },
  layout: {
    rows: { title: "rows", notation: "(4,8):(8,1)" },
    swizzle: { title: "swizzle", notation: "Sw<3,0,3> o (8,8):(8,1)" },
    "divide-into-tiles": { title: "divide into tiles", notation: "(8,12):(12,1)", op: "zipped_divide", other: "<4,6>" },
    "product-of-tiles": { title: "product of tiles", notation: "(2,4):(4,1)", op: "blocked_product", other: "(3,2):(2,1)" },
    compose: { title: "compose", notation: "(6,2):(8,2)", op: "compose", other: "(4,3):(3,1)" },
    "bank-conflict": { title: "bank conflicts", notation: "(32,32):(32,1)", threads: "32:1", itemsize: "4" },
    "threads-of-an-instruction": { title: "threads of an instruction", notation: "((4,8),(2,2)):((32,1),(16,8))", tile: "16x8" },
    "rope-order": { title: "RoPE order", notation: "(2,8):(8,1)", op: "right_inverse" },
    xla: { title: "XLA", notation: "bf16[16,128]{1,0:T(8,128)(2,1)}" },
    "banks-and-addresses": { title: "banks and addresses", notation: "(12,10):(1@bank,2048@addr)" },
  },
};
const LINKED = new Map(Object.entries(LISTS).flatMap(([view, list]) => Object.entries(list).map(([name, example]) => [name, { view, ...example }])));

/** Return the view of an example and its words; a name that is not here is a kernel's. */
export function exampleNamed(name) {
  const { view, title, ...words } = LINKED.get(name) ?? { view: "kernel", example: name };
  return { view, words };
}

/** Return a line of buttons that take an example of a view, each by its words. */
export function examples(view, take) {
  return make("p", { class: "soft examples" }, "Try ", ...Object.values(LISTS[view]).map(({ title, ...words }) =>
    make("button", { type: "button", class: "example", onclick: () => take(words) }, title)));
}
