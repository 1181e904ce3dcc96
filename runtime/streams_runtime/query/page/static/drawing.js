// The topology: cards and lines where the instance says, live figures on them, and what a chosen card is.

import { byId, element, setClass, setText, shape, show } from "./dom.js";
import { count, duration, plural, rate, short } from "./format.js";
import { isBehind } from "./overview.js";

const LONG_S = 60; // until a lag is caught up with: a longer one marks the topic
const LEAST = 0.62; // of the full size: letters of 7.5 pixels
const LEAST_PHONE = 0.8;
const PHONE = matchMedia("(max-width: 40rem)");
const measuring = document.createElement("canvas").getContext("2d");

export class Drawing {
  #topology;
  #cards = new Map();
  #chosen = null;
  #view = null;
  #queryStore;
  #full = false;
  #begun = false; // whether it was seen: it has no width before

  // `queryStore`: called with the name of a store that a person wants to query.
  constructor(topology, queryStore) {
    this.#topology = topology;
    this.#queryStore = queryStore;
    this.#draw();
    PHONE.addEventListener("change", () => this.#draw());
    new ResizeObserver(() => this.#size()).observe(byId("drawing"));
    byId("size").addEventListener("click", () => {
      this.#full = !this.#full;
      byId("size").setAttribute("aria-pressed", String(this.#full));
      this.#size();
    });
  }

  update(view) {
    this.#view = view;
    for (const { card, live, group, lines } of this.#cards.values()) {
      const said = this.#live(card, view);
      setText(live, fitted(said.text, card.width - 20, "11px"));
      setClass(live, `live ${said.className ?? ""}`);
      const marks = [card.kind, said.mark ?? "", card.id === this.#chosen ? "chosen" : ""].filter(Boolean);
      setClass(group, `card ${marks.join(" ")}`);
      group.setAttribute("aria-label", `${labelOf(card)}${said.text ? `: ${said.text}` : ""}`);
      for (const line of lines) line.classList.toggle("flows", (said.flows ?? 0) > 0);
    }
    if (this.#chosen) this.#describe(this.#cards.get(this.#chosen)?.card);
  }

  #draw() {
    const picture = this.#topology.pictures[PHONE.matches ? "down" : "right"];
    const markers = shape("defs", {}, arrow());
    const drawn = shape("svg", {
      viewBox: `-2 -2 ${picture.width + 4} ${picture.height + 4}`,
      role: "group", "aria-label": "The topology: steps, topics and stores",
    }, markers);
    for (const block of picture.blocks) {
      drawn.append(
        shape("rect", { className: "block", x: block.x, y: block.y, width: block.width, height: block.height, rx: 9 }),
        shape("text", { className: "block-title", x: block.x + 12, y: block.y + 16, text: block.title }),
      );
    }
    const lines = picture.lines.map((line) => ({ line, drawn: path(line) }));
    drawn.append(...lines.map(({ drawn: each }) => each));
    this.#cards = new Map();
    for (const card of picture.cards) {
      const leaving = lines.filter(({ line }) => line.from === card.id && card.kind !== "step").map(({ drawn: each }) => each);
      const { group, live } = this.#card(card);
      this.#cards.set(card.id, { card, group, live, lines: leaving });
      drawn.append(group);
    }
    [...this.#cards.values()][0]?.group.setAttribute("tabindex", "0");
    drawn.addEventListener("keydown", (event) => this.#onKey(event));
    byId("drawing").replaceChildren(drawn);
    this.#begun = false;
    this.#size();
    if (this.#view) this.update(this.#view);
  }

  // As wide as there is room, and never so small that it can't be read.
  #size() {
    const drawn = byId("drawing").firstChild;
    const { width, cards } = this.#topology.pictures[PHONE.matches ? "down" : "right"];
    drawn.style.maxWidth = this.#full ? "none" : `${width + 4}px`;
    drawn.style.width = this.#full ? `${width + 4}px` : "100%";
    drawn.style.minWidth = this.#full ? "0" : `${(width + 4) * (PHONE.matches ? LEAST_PHONE : LEAST)}px`;
    const seen = drawn.getBoundingClientRect().width;
    if (!seen) return;
    if (!this.#full) show(byId("size"), seen < width);
    if (!this.#begun) byId("drawing").scrollLeft = (cards[0].x - 12) * (seen / width);
    this.#begun = true;
  }

  #card(card) {
    const { x, y, width, height } = card;
    const node = this.#node(card);
    const inner = width - 20;
    const stores = card.kind === "step" ? this.#storesAt(card.name) : [];
    const live = shape("text", { className: "live", x: x + 10, y: y + 49 });
    const group = shape("g", { className: `card ${card.kind}`, role: "button", tabindex: "-1" },
      shape("title", { text: labelOf(card) }),
      shape("rect", { className: "shape", x, y, width, height, rx: card.kind === "step" ? 7 : 3 }),
      shape("text", { className: "title", x: x + 10, y: y + 19, text: fitted(card.name, inner, "600 12px") }),
      live,
    );
    const does = card.kind === "step" ? `${node.type}: ${node.does}` : card.kind === "repartition" ? "repartition topic" : "topic";
    if (card.kind !== "table") group.append(shape("text", { className: "does", x: x + 10, y: y + 34, text: fitted(does, inner, "11px") }));
    stores.forEach((store, number) => {
      const top = y + 57 + number * 20;
      group.append(
        shape("rect", { className: "store", x: x + 6, y: top, width: width - 12, height: 17, rx: 8 }),
        shape("text", { className: "does", x: x + 14, y: top + 12.5, text: fitted(`${store.kind} store ${store.name}`, inner - 8, "11px") }),
      );
    });
    group.addEventListener("click", () => this.#choose(card));
    return { group, live };
  }

  #live(card, view) {
    if (card.kind === "table") return { text: "" };
    if (card.kind !== "step") return this.#topicLive(card.name, view.topics[card.name]);
    const dropped = view.dropped.filter((row) => row.step === card.name);
    if (dropped.length) {
      const records = dropped.reduce((all, row) => all + row.records, 0);
      return { text: `⚠ ${short(records)} dropped`, className: "bad", mark: "marked" };
    }
    const restoring = view.restoration.filter((row) => row.ended_at === null && this.#storesAt(card.name).some(({ name }) => name === row.store));
    if (restoring.length) {
      const [done, all] = [restoring.reduce((a, r) => a + r.position - r.start, 0), restoring.reduce((a, r) => a + r.end - r.start, 0)];
      return { text: `◐ restores: ${all ? Math.floor((done / all) * 100) : 0} %`, className: "busy" };
    }
    const peeks = view.peeks.filter((row) => row.step === card.name);
    return { text: peeks.map((row) => `${row.metric}: ${short(row.records)}`).join(", ") };
  }

  #topicLive(name, topic) {
    if (!topic) return { text: "" };
    const lag = topic.lag === null ? "" : `lag ${short(topic.lag)}`;
    const read = topic.read === null ? "" : `${rate(topic.read)}/s`;
    const lags = topic.lag > 0 && (isBehind(topic.worst) || topic.worst.left > LONG_S);
    return { text: [read, lag].filter(Boolean).join(" · "), flows: topic.read, className: lags ? "busy" : "", mark: lags ? "lags" : "" };
  }

  #node({ kind, name }) {
    return kind === "step" ? this.#topology.subtopologies.flatMap((sub) => sub.nodes).find((node) => node.name === name) : null;
  }

  #storesAt(step) {
    return this.#topology.subtopologies.flatMap((sub) => sub.stores).filter((store) => store.node === step);
  }

  #choose(card) {
    const again = this.#chosen === card.id;
    this.#chosen = again ? null : card.id;
    this.#focus(card.id);
    byId("detail").replaceChildren();
    if (this.#view) this.update(this.#view);
    show(byId("detail"), !again);
    if (again) return;
    this.#describe(card);
    setText(byId("announce"), byId("detail").innerText); // once, not with every figure that changes
  }

  #focus(id) {
    for (const { card, group } of this.#cards.values()) group.setAttribute("tabindex", card.id === id ? "0" : "-1");
    this.#cards.get(id)?.group.focus();
  }

  // Arrow keys go to the nearest card in their direction; there is one stop for Tab.
  #onKey(event) {
    const here = [...this.#cards.values()].find(({ group }) => group === event.target)?.card;
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#choose(here);
      return;
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const middle = (card) => [card.x + card.width / 2, card.y + card.height / 2];
    const from = middle(here);
    let nearest = null;
    for (const { card } of this.#cards.values()) {
      const [dx, dy] = [middle(card)[0] - from[0], middle(card)[1] - from[1]];
      const along = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (card !== here && along > 1 && (!nearest || along + 2 * aside < nearest.far)) nearest = { card, far: along + 2 * aside };
    }
    if (nearest) this.#focus(nearest.card.id);
  }

  #describe(card) {
    if (!card) return;
    const list = element("dl");
    const add = (term, ...children) => children.length && list.append(element("dt", { text: term }), element("dd", {}, ...children));
    const names = (all) => all.length && [element("span", { className: "name", text: all.join(", ") })];
    if (card.kind === "step") this.#describeStep(card, add, names);
    else this.#describeTopic(card, add);
    const detail = byId("detail");
    if (detail.dataset.said === card.id && detail.contains(document.activeElement)) return; // not under a person's hands
    const fresh = [element("h3", { className: "name", text: labelOf(card) }), list];
    const said = fresh.map((each) => each.textContent).join("\n");
    if (detail.dataset.text !== said || !detail.childElementCount) detail.replaceChildren(...fresh);
    detail.dataset.text = said;
    detail.dataset.said = card.id;
  }

  #describeStep(card, add, names) {
    const node = this.#node(card);
    add("does", element("span", { text: `${node.type}: ${node.does}` }));
    add("takes from", ...(names(node.from) || []));
    add("gives to", ...(names(node.to) || []));
    add(node.from.length ? "writes topic" : "reads topic", ...(names(node.topics) || []));
    for (const store of this.#storesAt(card.name)) {
      const query = element("button", { type: "button", className: "plain", text: "query it" });
      query.addEventListener("click", () => this.#queryStore(store.name));
      add("store", element("span", { className: "name", text: store.name }), ` (${store.kind}, changelog `,
        element("span", { className: "name", text: store.changelogTopic }), ") ", query);
    }
    for (const row of this.#view?.dropped.filter(({ step }) => step === card.name) ?? []) {
      add("dropped", `${count(row.records)}: ${row.reason}`);
    }
  }

  #describeTopic(card, add) {
    const name = card.kind === "table" ? null : card.name;
    const topic = this.#view?.topics[name];
    if (card.kind === "table") {
      add("is", "a global table, whole on every instance, which the step asks");
      return;
    }
    add("is", card.kind === "repartition" ? "a repartition topic, the application's own" : "a topic");
    if (!topic) return;
    add("partitions read", plural(topic.partitions, "partition"));
    add("lag", `${count(topic.lag)}; the most: ${count(topic.worst.lag)} in partition ${topic.worst.partition}`);
    add("read", `${rate(topic.read)} a second; ${rate(topic.arrives)} a second arrive`);
    if (isBehind(topic.worst)) add("caught up", "not at this rate");
    else if (topic.worst.pace === "catches-up") add("caught up", `in ${duration(topic.worst.left)}`);
  }
}

function labelOf(card) {
  const kind = { step: "Step", topic: "Topic", repartition: "Repartition topic", table: "Global table" }[card.kind];
  return `${kind} ${card.name}`;
}

function arrow() {
  return shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    shape("path", { className: "arrow", d: "M0 0 L8 4 L0 8 z" }));
}

// Forward lines are curves along the direction of the drawing, lines of a cycle go around with rounded corners.
function path({ points, back, dashed }) {
  const down = points.length > 1 && PHONE.matches;
  let d = `M${points[0][0]} ${points[0][1]}`;
  for (let number = 1; number < points.length; number += 1) {
    const [[x, y], [toX, toY]] = [points[number - 1], points[number]];
    if (back || x === toX || y === toY) d += ` L${toX} ${toY}`;
    else if (down) d += ` C${x} ${(y + toY) / 2} ${toX} ${(y + toY) / 2} ${toX} ${toY}`;
    else d += ` C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}`;
  }
  return shape("path", { className: dashed ? "line dashed" : "line", d, "marker-end": "url(#arrow)", "stroke-linejoin": "round" });
}

// The text, its middle left out where it is too wide.
function fitted(text, width, font) {
  measuring.font = `${font} system-ui, "DejaVu Sans", sans-serif`;
  if (measuring.measureText(text).width <= width) return text;
  let [least, most] = [1, text.length];
  const cut = (kept) => `${text.slice(0, Math.ceil(kept * 0.6))}…${text.slice(text.length - Math.floor(kept * 0.4))}`;
  while (least < most) {
    const kept = Math.ceil((least + most) / 2);
    if (measuring.measureText(cut(kept)).width <= width) least = kept;
    else most = kept - 1;
  }
  return cut(least);
}
