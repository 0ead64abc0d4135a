// SPDX-License-Identifier: Apache-2.0
// What one core or bank holds.

import { card, make, sized, spaced } from "./dom.js";

/** Return the card of a core or bank; look(page) shows one of its pages. */
export function holding(found, look) {
  const name = found.core === null ? `${found.memory} bank ${found.bank}` : `core (${found.core.replace(",", ", ")})`;
  const title = `What ${name} holds`;
  const where = found.core === null ? "" : `${found.memory} bank ${found.bank} · `;
  if (!found.pages) return card(title, make("p", { class: "soft" }, `${where}nothing of this tensor.`));
  const sharded = found.rows[0].shard !== null;
  const head = [...(sharded ? ["shard"] : []), "pages", "starts at", "address", "to"];
  return card(title,
    make("p", {}, make("b", {}, `${spaced(found.pages)} page${found.pages === 1 ? "" : "s"}`),
      make("span", { class: "soft" }, ` · ${where}${spaced(found.bytes)} bytes, ${sized(found.bytes)} of ${sized(found.bank_bytes)}`)),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col", class: ["address", "to"].includes(each) ? "number" : "" }, each)))),
      make("tbody", {}, ...found.rows.map((row) => make("tr", {},
        ...(sharded ? [make("td", {}, String(row.shard))] : []),
        make("td", {}, make("button", { type: "button", class: "link", onclick: () => look(row.page) }, row.pages)),
        make("td", {}, row.matrix), make("td", { class: "number" }, spaced(row.address)), make("td", { class: "number" }, spaced(row.end))))))),
    found.more ? make("p", { class: "soft" }, `and ${spaced(found.more)} more runs of pages`) : null);
}
