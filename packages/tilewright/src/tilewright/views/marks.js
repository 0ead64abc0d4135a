// SPDX-License-Identifier: Apache-2.0
// A mark on a cell or a span, and on everything that is the same thing. Text only ever goes into textContent.

/**
 * Let the pointer and the keyboard move a mark over pictures of one scene.
 *
 * pictures: the SVG elements of its panels; panels: their data; told: the element that says what is marked.
 * picked(number, at): called when somebody clicks, or presses Enter, on a cell or span; between: what parts facts.
 */
export function follow(pictures, panels, told, picked = () => {}, between = "\n") {
  let held = false;

  for (const panel of panels) {
    if (!panel.fields) continue;
    panel.hidden = new Set(panel.hidden);
    if (typeof panel.link === "string") panel.link = panel.fields[panel.link];
  }

  const grids = pictures.map((svg) => {
    const cells = svg.querySelector(".tw-cells");
    if (!cells) return null;
    const number = (name) => Number(cells.dataset[name]);
    const grid = { rows: number("rows"), columns: number("columns"), left: number("left"), top: number("top"),
      width: number("width"), height: number("height") };
    // A grid without boxes is one box.
    grid.tall = number("tall") || grid.rows;
    grid.wide = number("wide") || grid.columns;
    grid.right = number("right") || grid.wide * grid.width;
    grid.down = number("down") || grid.tall * grid.height;
    return grid;
  });

  // For each panel: from the value of a link to the cells or spans that have it.
  const places = panels.map((panel) => {
    const found = new Map();
    const links = panel.fields ? panel.link : panel.spans.map((span) => span[1]);
    links.forEach((value, at) => {
      if (value === null) return;
      if (!found.has(value)) found.set(value, []);
      found.get(value).push(at);
    });
    return found;
  });

  // As Python writes them: "{}" is the value, "{:X}" its hexadecimal digits, "{:B}" bytes.
  const written = (value, form) => (value < 0 && form.includes("{:X}") ? "-" : "")
    + form.replace("{:X}", () => Math.abs(value).toString(16).toUpperCase()).replace("{:B}", () => `${value} bytes`)
    .replace(/\{(:>\d)?\}/, () => value);

  const nameOf = (names, k) => (Array.isArray(names) ? names[k] : String(k * names));

  function boxOf(panel, row, column) {
    const [tall, wide, across] = panel.boxes.size;
    const box = Math.floor(row / tall) * across + Math.floor(column / wide);
    const name = (panel.boxes.rows[box] || [])[row % tall];
    return [[panel.boxes.titles[box], name && `${panel.axes[0]} ${name}`].filter(Boolean).join(", ") || panel.title];
  }

  function describe(number, at) {
    const panel = panels[number];
    if (!panel.fields) return panel.notes[panel.spans[at][0]];
    const columns = grids[number].columns;
    const lines = panel.boxes ? boxOf(panel, Math.floor(at / columns), at % columns)
      : [`${panel.axes[0] || "row"} ${nameOf(panel.rows, Math.floor(at / columns))}, `
        + `${panel.axes[1] || "column"} ${nameOf(panel.columns, at % columns)}`];
    for (const [name, values] of Object.entries(panel.fields)) {
      if (values[at] !== null) lines.push(`${name}: ${written(values[at], panel.forms?.[name] ?? "{}")}`);
    }
    if (panel.hidden.has(at)) lines.push(panel.hatched);
    return lines.join("\n");
  }

  function box(number, at) {
    const grid = grids[number];
    if (grid) {
      const row = Math.floor(at / grid.columns);
      const column = at % grid.columns;
      return { x: grid.left + Math.floor(column / grid.wide) * grid.right + (column % grid.wide) * grid.width,
        y: grid.top + Math.floor(row / grid.tall) * grid.down + (row % grid.tall) * grid.height,
        width: grid.width, height: grid.height };
    }
    const span = pictures[number].querySelector(`[data-span="${at}"]`);
    return Object.fromEntries(["x", "y", "width", "height"].map((name) => [name, span.getAttribute(name)]));
  }

  /** Return an arrow from one cell to another, as Python draws it. */
  function arrow(number, from, to) {
    const middle = (at) => { const { x, y, width, height } = box(number, at); return [x + width / 2, y + height / 2]; };
    const [[x0, y0], [x1, y1]] = [middle(from), middle(to)];
    const [cx, cy] = [(x0 + x1) / 2 - 0.15 * (y1 - y0), (y0 + y1) / 2 + 0.15 * (x1 - x0)];
    const away = Math.hypot(x1 - cx, y1 - cy) || 1;
    const [dx, dy] = [(x1 - cx) / away, (y1 - cy) / away];
    const [sx, sy] = [x0 + (11 * (cx - x0)) / away, y0 + (11 * (cy - y0)) / away];
    const [ex, ey] = [x1 - 11 * dx, y1 - 11 * dy];
    return `M${sx} ${sy}Q${cx} ${cy} ${ex} ${ey}M${ex - 6 * dx + 3 * dy} ${ey - 6 * dy - 3 * dx}L${ex} ${ey}L${ex - 6 * dx - 3 * dy} ${ey - 6 * dy + 3 * dx}`;
  }

  /** Draw what leaves a cell and what arrives there. */
  function drawFlows(number, at) {
    const { flows } = panels[number];
    if (!flows) return;
    pictures[number].classList.add("pointed");
    const most = flows.reduce((size, flow) => Math.max(size, flow[2]), 1);
    for (const [from, to, size] of flows) {
      if (from !== at && to !== at) continue;
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", arrow(number, from, to));
      path.setAttribute("class", from === at ? "mark-flow leaves" : "mark-flow arrives");
      path.setAttribute("stroke-width", 1.2 + (2 * size) / most);
      pictures[number].append(path);
    }
  }

  function draw(number, at) {
    drawFlows(number, at);
    for (const kind of ["mark-rim", "mark"]) {
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of Object.entries(box(number, at))) rect.setAttribute(name, value);
      rect.setAttribute("class", kind);
      pictures[number].append(rect);
    }
  }

  function clear() {
    for (const svg of pictures) {
      svg.classList.remove("pointed");
      svg.querySelectorAll(".mark, .mark-rim, .mark-flow").forEach((mark) => mark.remove());
    }
  }

  function point(number, at) {
    clear();
    const panel = panels[number];
    const link = panel.fields ? panel.link[at] : panel.spans[at][1];
    const others = [];
    if (link !== null && link !== undefined) {
      places.forEach((found, k) => (found.get(link) || []).slice(0, 256).forEach((same) => {
        if (k !== number || same !== at) draw(k, same);
        if (k !== number && others.length < 4) others.push(`${panels[k].title || "also"}: ${describe(k, same).split("\n")[0]}`);
      }));
    }
    draw(number, at);
    pictures[number].dataset.at = at;
    told.textContent = [describe(number, at), ...others].join("\n").replaceAll("\n", between);
  }

  function hold(value) {
    held = value;
    told.classList.toggle("held", held);
  }

  function count(number) {
    const grid = grids[number];
    return grid ? grid.rows * grid.columns : panels[number].spans.length;
  }

  pictures.forEach((svg, number) => {
    const grid = grids[number];
    const under = (event) => {
      if (!grid) {
        const span = event.target.closest("[data-span]");
        return span ? Number(span.dataset.span) : null;
      }
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const [x, y] = [at.x - grid.left, at.y - grid.top];
      const [across, below] = [Math.floor(x / grid.right), Math.floor(y / grid.down)];
      const column = Math.floor((x - across * grid.right) / grid.width);
      const row = Math.floor((y - below * grid.down) / grid.height);
      if (x < 0 || y < 0 || column >= grid.wide || row >= grid.tall) return null; // outside, or between boxes
      const [line, place] = [below * grid.tall + row, across * grid.wide + column];
      return line < grid.rows && place < grid.columns ? line * grid.columns + place : null;
    };
    svg.addEventListener("pointermove", (event) => {
      const at = under(event);
      if (!held && at !== null && (at !== Number(svg.dataset.at) || !svg.querySelector(".mark"))) point(number, at);
    });
    svg.addEventListener("click", (event) => {
      const at = under(event);
      if (at === null) return;
      hold(false);
      point(number, at);
      hold(true);
      picked(number, at);
    });
    svg.addEventListener("keydown", (event) => {
      const columns = grid ? grid.columns : 1;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      const now = Number(svg.dataset.at || 0);
      const last = count(number) - 1;
      if (event.key === "Escape") { hold(false); clear(); return; }
      if (event.key === "Enter") {
        hold(!held);
        event.preventDefault();
        if (held) picked(number, now);
        return;
      }
      const next = event.key === "Home" ? 0 : event.key === "End" ? last : step === undefined ? null : now + step;
      if (next === null) return;
      event.preventDefault();
      if (next >= 0 && next <= last) point(number, next);
    });
    svg.addEventListener("focus", () => { if (!held && count(number)) point(number, Number(svg.dataset.at || 0)); });
  });
}
