
// The picture of a widget, after marks.js: in a shadow tree, where neither the notebook's style nor ours reaches the other.
function render({ model, el }) {
  const root = el.attachShadow({ mode: "open" });
  root.innerHTML = model.get("markup"); // our own, in which every text is escaped
  const panels = JSON.parse(model.get("panels"));
  follow([...root.querySelectorAll("svg[data-panel]")], panels, root.getElementById("told"), (number, at) => {
    const { title, fields, notes, spans } = panels[number];
    const cell = fields ? Object.entries(fields).map(([name, values]) => [name, values[at]]) : [["note", notes[spans[at][0]]]];
    model.set("chosen", { panel: title, ...Object.fromEntries(cell.filter(([, value]) => value !== null)) });
    model.save_changes();
  });
}

export default { render };
