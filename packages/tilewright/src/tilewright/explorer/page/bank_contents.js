// SPDX-License-Identifier: Apache-2.0
// What one core or bank holds.

import { card, make, sized, spaced } from "./dom.js";

/** Return the card of a core or bank; look(page) shows one of its pages. */
export function bankContents(result, look) {
  const name = result.core === null ? `${result.memory} bank ${result.bank}` : `core (${result.core.replace(",", ", ")})`;
  const title = `What ${name} holds`;
  const where = result.core === null ? "" : `${result.memory} bank ${result.bank} · `;
  if (!result.pages) return card(title, make("p", { class: "soft" }, `${where}nothing of this tensor.`));
  const sharded = result.rows[0].shard !== null;
  const head = [...(sharded ? ["shard"] : []), "pages", "starts at", "address", "to"];
  return card(title,
    make("p", {}, make("b", {}, `${spaced(result.pages)} page${result.pages === 1 ? "" : "s"}`),
      make("span", { class: "soft" }, ` · ${where}${spaced(result.bytes)} bytes, ${sized(result.bytes)} of ${sized(result.bank_bytes)}`)),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col", class: ["address", "to"].includes(each) ? "number" : "" }, each)))),
      make("tbody", {}, ...result.rows.map((row) => make("tr", {},
        ...(sharded ? [make("td", {}, String(row.shard))] : []),
        make("td", {}, make("button", { type: "button", class: "link", onclick: () => look(row.page) }, row.pages)),
        make("td", {}, row.matrix), make("td", { class: "number" }, spaced(row.address)), make("td", { class: "number" }, spaced(row.end))))))),
    result.more ? make("p", { class: "soft" }, `and ${spaced(result.more)} more runs of pages`) : null);
}
