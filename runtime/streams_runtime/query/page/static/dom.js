// Elements, made and changed in place. Text goes in as text, never as HTML: names, keys and messages come from others.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(tag, { className, text, title, ...attributes } = {}, ...children) {
  return filled(document.createElement(tag), className, text, title, attributes, children);
}

export function shape(tag, { className, text, title, ...attributes } = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), className, text, title, attributes, children);
}

function filled(made, className, text, title, attributes, children) {
  if (className) made.setAttribute("class", className);
  if (text !== undefined) made.textContent = text;
  if (title) made.setAttribute("title", title);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function setClass(target, className) {
  if ((target.getAttribute("class") ?? "") !== className) target.setAttribute("class", className);
}

export function show(target, shown) {
  if (target.hidden === shown) target.hidden = !shown;
}

// Rows of a table, changed in place, so that what has the focus or is selected stays so.
// A row: {cells, className}; a cell: a text, or {text, className, title, meter (0 to 1), press}.
export function setRows(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, number) => {
    const line = body.rows[number] ?? body.insertRow();
    setClass(line, row.className ?? "");
    while (line.cells.length < row.cells.length) line.insertCell();
    row.cells.forEach((cell, place) => setCell(line.cells[place], typeof cell === "object" ? cell : { text: cell }));
  });
}

function setCell(place, { text, className = "", title = "", meter, press }) {
  setClass(place, className);
  if (place.title !== title) place.title = title;
  if (press) {
    let button = place.querySelector("button");
    if (!button) place.replaceChildren((button = element("button", { type: "button", className: "plain name" })));
    setText(button, text);
    button.onclick = press;
  } else if (meter !== undefined) {
    let bar = place.querySelector(".meter");
    if (!bar) place.replaceChildren((bar = element("span", { className: "meter" }, element("i"), element("b"))));
    bar.firstChild.style.width = `${Math.min(Math.max(meter, 0), 1) * 100}%`;
    setText(bar.lastChild, text);
  } else {
    setText(place, text);
  }
}
