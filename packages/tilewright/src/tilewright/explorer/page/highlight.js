// SPDX-License-Identifier: Apache-2.0
// The tokens of Mojo and Python, as far as they have colors.

const SHARED = "and as assert break continue def elif else except finally for from if import in is lambda not or pass raise return try while with";
const WORDS = {
  mojo: {
    keyword: `${SHARED} alias borrowed capturing comptime deinit fn imm inout mut out owned raises read ref struct trait unified var where`,
    constant: "True False None self Self",
    type: "Bool DType Int UInt String StringLiteral SIMD Scalar List InlineArray Tuple Optional TileTensor LayoutTensor DeviceContext AddressSpace UnsafePointer",
  },
  python: {
    keyword: `${SHARED} async await class del global nonlocal yield`,
    constant: "True False None self",
    type: "bool bytes dict float int list object set str tuple",
  },
};
const KINDS = Object.fromEntries(Object.entries(WORDS).map(([language, table]) =>
  [language, new Map(Object.entries(table).flatMap(([kind, words]) => words.split(" ").map((word) => [word, kind])))]));
const TOKEN = /(?<comment>#.*)|(?<string>[fFrRbBtTuU]{0,2}(?:"""[^]*?(?:"""|$(?![^]))|'''[^]*?(?:'''|$(?![^]))|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<decorator>^[ \t]*@[\w.]+)|(?<number>\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?))|(?<word>[A-Za-z_]\w*)/gm;
const SIZED = /^(?:U?Int|Float|BFloat)\d+$/;

/** Return the colored tokens of a source as [start, end, kind], in order. */
export function tokens(source, language) {
  const kinds = KINDS[language] ?? KINDS.mojo;
  const found = [];
  for (const { 0: text, index, groups } of source.matchAll(TOKEN)) {
    const kind = groups.word ? kinds.get(text) ?? (SIZED.test(text) ? "type" : null)
      : ["comment", "string", "decorator", "number"].find((name) => groups[name] !== undefined);
    if (kind) found.push([index, index + text.length, kind]);
  }
  return found;
}
