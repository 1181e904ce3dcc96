// The sections beside the drawing: each shows a part of the overview.

import { byId, element, setClass, setRows, setText, shape, show } from "./dom.js";
import { clock, count, duration, kindOf, part, plural, rate, short, signed } from "./format.js";
import { besides, isBehind, sum } from "./overview.js";

const FEW = 12;
const unfolded = { lag: false, restoration: false };

export function onMore(changed) {
  for (const name of Object.keys(unfolded)) {
    byId(`${name}-all`).addEventListener("click", () => {
      unfolded[name] = !unfolded[name];
      changed();
    });
  }
}

function fold(name, rows, what) {
  show(byId(`${name}-all`), rows.length > FEW);
  setText(byId(`${name}-all`), unfolded[name] ? `Only the first ${FEW}` : `All ${plural(rows.length, what)}`);
  byId(`${name}-all`).setAttribute("aria-expanded", String(unfolded[name]));
  return unfolded[name] ? rows : rows.slice(0, FEW);
}

// --- errors and figures

export function errors(view) {
  const target = byId("errors");
  const said = JSON.stringify(view.errors);
  if (target.dataset.said === said) return;
  target.dataset.said = said;
  target.replaceChildren(...view.errors.map((error) => {
    const list = element("dl", {}, element("dt", { text: "What" }), element("dd", { text: error.message }),
      element("dt", { text: "Exception" }), element("dd", { className: "name", text: error.class }));
    if (error.remedy) list.append(element("dt", { text: "What to do" }), element("dd", { className: "remedy", text: sentence(error.remedy) }));
    return element("div", { className: "error", role: "alert" },
      element("h2", { text: `✖ ${error.instance} ${error.state === "ERROR" ? "is" : "ends"} in ERROR` }), list);
  }));
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

export function figures(view, courses) {
  const restoring = view.restoration.filter((row) => row.ended_at === null);
  const running = view.tasks.filter((task) => task.state === "RUNNING").length;
  const lag = sum(view.lag.map((row) => row.lag));
  const dropped = sum(view.dropped.map((row) => row.records)) ?? 0;
  const recent = sum(view.dropped.map((row) => row.recent)) ?? 0;
  const tiles = {
    processed: ["Records processed / s", rate(view.processed), `${short(view.counters.records_processed)} since the start`, courses.processed],
    lag: ["Lag", short(lag), catchUp(view.lag), courses.lag],
    tasks: ["Tasks running", `${count(running)} of ${count(view.tasks.length)}`, view.standbys.length ? plural(view.standbys.length, "standby", "standbys") : "no standbys"],
    restoring: ["To restore", short(sum(restoring.map((row) => row.remaining)) ?? 0), restoring.length ? `${plural(restoring.length, "store")}, ${left(etaOf(view))}` : "nothing restores"],
    dropped: ["Records dropped", short(dropped), dropped ? `${short(recent)} in 30 s` : "none"],
    problems: ["Recent problems", count(view.problems.length), view.problems.length ? `last at ${clock(view.problems[0].at)}` : "none"],
  };
  const target = byId("figures");
  for (const [name, [title, value, more, course]] of Object.entries(tiles)) {
    let tile = target.querySelector(`[data-tile="${name}"]`);
    if (!tile) {
      tile = element("div", { "data-tile": name }, element("dt"), element("dd"), element("dd", { className: "more" }));
      if (course) {
        tile.append(element("dd", { className: "course", "aria-hidden": "true" }, shape("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none" }, shape("polyline", { className: "spark" }))));
      }
      target.append(tile);
    }
    setText(tile.children[0], title);
    setText(tile.children[1], value);
    setText(tile.children[2], more);
    tile.querySelector("polyline")?.setAttribute("points", course.points());
  }
}

const etaOf = (view) => view.restorationInAll.map((each) => each.eta_seconds).reduce((one, other) => (one === null || other === null ? null : Math.max(one, other)), 0);
const left = (seconds) => (seconds === null ? "time left not known yet" : `about ${duration(seconds)} left`);

function catchUp(rows) {
  const behind = rows.filter((row) => row.lag > 0);
  if (!behind.length) return rows.length ? "caught up" : "";
  const losing = behind.filter(isBehind).length;
  if (losing) return `${plural(losing, "partition")} not catching up`;
  const catching = behind.filter((row) => row.pace === "catches-up");
  return catching.length ? `caught up in ${duration(Math.max(...catching.map((row) => row.left)))}` : "";
}

export function counts(view) {
  const restoring = view.restoration.filter((row) => row.ended_at === null).length;
  const idle = view.tasks.filter((task) => task.state !== "RUNNING").length;
  const behind = view.lag.filter(isBehind).length;
  const away = view.instances.filter((row) => row.state !== "RUNNING").length;
  badge("instances", away, "busy");
  badge("problems", view.problems.length, view.problems.some((each) => each.level === "error") ? "bad" : "busy");
  badge("lag", behind, "busy");
  badge("dropped", view.dropped.length, "bad");
  badge("tasks", idle, "busy");
  badge("restoration", restoring, "busy");
}

function badge(section, number, className) {
  const link = document.querySelector(`nav a[href="#${section}"]`);
  let mark = link.querySelector(".count");
  if (!mark) link.append((mark = element("span", { className: "count" })));
  setText(mark, number ? ` ${count(number)}` : "");
  setClass(mark, number ? `count ${className}` : "count");
}

// --- instances and problems

export function instances(view, choose) {
  setRows(byId("instances-rows"), view.instances.map((row) => ({
    cells: [
      { text: row.instance, className: "name", press: () => choose(row.instance), title: "Show this instance alone" },
      instanceState(row),
      numeric(row.tasks === undefined ? "–" : `${count(row.running)} of ${count(row.tasks)}`),
      numeric(rate(row.processed)),
      numeric(short(row.lag)),
      { text: short(row.restoring), className: "number aside" },
    ],
  })));
}

function instanceState(row) {
  if (row.ended) return { text: `${signed(row.state)}, ended`, className: `state ${kindOf(row.state)}` };
  if (row.state && !row.problem) {
    return { text: signed(row.state) + besides([row]), className: `state ${kindOf(row.state)}` };
  }
  if (row.state) return { text: `? was ${row.state}: ${row.problem}`, className: "busy" };
  if (row.problem) return { text: `? ${row.inGroup ? "" : "not in the group: "}${row.problem}`, className: "busy" };
  return { text: row.url ? "? asked" : row.inGroup ? "? in the group, at an address that nobody vouches for" : "? not in the group", className: "idle" };
}

const numeric = (text) => ({ text, className: "number" });

export function problems(view) {
  show(byId("problems-list"), view.problems.length > 0);
  setText(byId("problems-none"), view.problems.length ? "" : "No warnings and no errors since the start.");
  const target = byId("problems-list");
  const said = JSON.stringify(view.problems);
  if (target.dataset.said === said) return;
  target.dataset.said = said;
  target.replaceChildren(...view.problems.map((each) => {
    const times = each.times > 1 ? `, ${count(each.times)} times, the last at ` : " at ";
    const line = element("li", { className: each.level === "error" ? "error-line" : "" },
      element("span", { className: "when" },
        element("strong", { className: each.level === "error" ? "bad" : "busy", text: each.level === "error" ? "✖ error" : "▲ warning" }),
        `${times}${clock(each.at)}, `, element("span", { className: "name", text: each.where || each.instance })),
      element("p", { text: each.message }));
    if (each.remedy) line.append(element("p", { className: "remedy", text: `What to do: ${each.remedy.replace(/\.$/, "")}.` }));
    return line;
  }));
}

// --- lag and dropped records

export function lag(view) {
  const rows = fold("lag", view.lag, "partition");
  const [worst] = view.lag;
  const all = sum(view.lag.map((row) => row.lag));
  setText(byId("lag-finding"), finding(worst, all, view.lag.length));
  setRows(byId("lag-rows"), rows.map((row, number) => ({
    className: number === 0 && row.lag > 0 ? "worst" : "",
    cells: [
      { text: `${number === 0 && row.lag > 0 ? "▲ " : ""}${row.topic}-${row.partition}`, className: "name" },
      { text: row.instance, className: "name aside" },
      { text: count(row.lag), className: "number", title: `offset ${count(row.position)} of ${count(row.end)}` },
      numeric(rate(row.read)),
      { text: rate(row.arrives), className: "number aside" },
      { text: PACES[row.pace](row), className: isBehind(row) ? "busy words" : "words" },
    ],
  })));
}

const PACES = {
  "caught-up": () => "● yes",
  "catches-up": (row) => `in ${duration(row.left)}`,
  "keeps-up": (row) => `keeps up, ${duration(row.left)} behind`,
  "falls-behind": () => "▲ falls behind",
  waits: (row) => `not read for ${duration(row.left)}`,
  stands: () => "✖ stands still",
  paused: () => "‖ paused",
  unknown: (row) => (row.lag === null ? "–" : "…"),
};

function finding(worst, all, number) {
  if (!worst) return "No partitions are read by the instances that are shown.";
  if (!all) return `${plural(number, "partition")}, all caught up.`;
  const share = all > 0 && number > 1 ? ` of ${count(all)} in all (${part(worst.lag, all)})` : "";
  const reason = worst.pace === "stands" ? "; nothing of it was read lately" : "";
  return `The most lag has ${worst.topic}-${worst.partition}, read by ${worst.instance}: ${count(worst.lag)}${share}${reason}.`;
}

export function dropped(view) {
  const [most] = view.dropped;
  show(byId("dropped-table"), Boolean(most));
  const all = sum(view.dropped.map((row) => row.records));
  const where = most?.step ? `The step ${most.step} drops the most` : "Of all instances that are shown";
  setText(byId("dropped-finding"), most ? `${where}: ${count(most.records)} of ${plural(all, "record")}, ${most.reason}.` : "No step has dropped a record since the start.");
  setRows(byId("dropped-rows"), view.dropped.map((row, number) => ({
    className: number === 0 && row.step ? "worst" : "",
    cells: [
      { text: row.step ? `${number === 0 ? "▲ " : ""}${row.step}` : "any", className: row.step ? "name" : "idle" },
      row.reason,
      numeric(count(row.records)),
      numeric(row.recent === null ? "–" : count(row.recent)),
    ],
  })));
}

// --- tasks and restoration

const CELL = { RUNNING: ["ok", ""], RESTORING: ["busy", "↻"], CREATED: ["idle", "○"], SUSPENDED: ["idle", "‖"], CLOSED: ["bad", "×"] };

export function tasks(view, topology) {
  const target = byId("tasks-grids");
  const groups = Map.groupBy(view.tasks, (task) => task.id.split("_")[0]);
  const ids = [...groups.keys()].sort((one, other) => one - other);
  while (target.children.length > ids.length) target.lastChild.remove();
  ids.forEach((id, number) => {
    const mine = groups.get(id).sort((one, other) => partitionOf(one) - partitionOf(other));
    if (!target.children[number]) target.append(element("div", {}, element("p", { className: "tasks-title" }), element("div", { className: "grid", "aria-hidden": "true" })));
    const [title, grid] = target.children[number].children;
    const topics = topology?.subtopologies.find((sub) => String(sub.id) === id)?.sourceTopics ?? [];
    const states = Map.groupBy(mine, (task) => task.state);
    const said = [...states].map(([state, all]) => `${count(all.length)} ${state}`).join(", ");
    setText(title, `Sub-topology ${id}${topics.length ? ` of ${topics.join(", ")}` : ""}: ${said}`);
    while (grid.children.length > mine.length) grid.lastChild.remove();
    mine.forEach((task, place) => {
      const cell = grid.children[place] ?? grid.appendChild(element("span"));
      const [kind, sign] = CELL[task.state] ?? ["busy", "?"];
      setClass(cell, `cell ${kind}`);
      setText(cell, sign);
      const tip = `${task.id} ${task.state} on ${task.instance}`;
      if (cell.title !== tip) cell.title = tip;
    });
  });
  const others = view.tasks.filter((task) => task.state !== "RUNNING").slice(0, FEW);
  show(byId("tasks-table"), others.length > 0);
  setRows(byId("tasks-rows"), others.map((task) => ({
    cells: [{ text: task.id, className: "name" }, { text: signed(task.state), className: "state busy" },
      { text: task.instance, className: "name" }, { text: task.thread ?? "", className: "name" }],
  })));
  setText(byId("standbys"), standbyLine(view.standbys));
}

const partitionOf = (task) => Number(task.id.split("_")[1]);

function standbyLine(standbys) {
  if (!standbys.length) return "No standbys here.";
  const [most] = [...standbys].sort((one, other) => (other.lag ?? Infinity) - (one.lag ?? Infinity));
  const furthest = most.lag === null ? `${most.id} on ${most.instance} does not know yet how far it is` : `the furthest behind: ${most.id} on ${most.instance}, by ${plural(most.lag, "offset")}`;
  return `${plural(standbys.length, "standby", "standbys")}; ${furthest}.`;
}

export function restoration(view) {
  const ongoing = view.restoration.filter((row) => row.ended_at === null).sort((one, other) => other.remaining - one.remaining);
  const ended = view.restoration.filter((row) => row.ended_at !== null);
  show(byId("restoration-table"), ongoing.length > 0);
  const rows = fold("restoration", ongoing, "store partition");
  setText(byId("restoration-finding"), restorationFinding(view, ongoing, ended));
  setRows(byId("restoration-rows"), rows.map((row) => {
    const [done, all] = [row.position - row.start, row.end - row.start];
    return {
      cells: [
        { text: `${row.store} ${row.partition}`, className: "name" },
        { text: row.instance, className: "name aside" },
        { text: part(done, all), meter: all > 0 ? done / all : 0 },
        { text: count(row.remaining), className: "number" },
        { text: rate(row.rate), className: "number aside" },
        { text: row.eta_seconds === null ? "not known yet" : duration(row.eta_seconds), className: "words" },
      ],
    };
  }));
}

function restorationFinding(view, ongoing, ended) {
  if (ongoing.length) {
    const offsets = sum(ongoing.map((row) => row.remaining));
    const speed = sum(view.restorationInAll.map((each) => each.rate));
    return `${plural(ongoing.length, "store partition")} ${ongoing.length === 1 ? "restores" : "restore"}: ${plural(offsets, "offset")} left${speed === null ? "" : ` at ${rate(speed)} a second`}, ${left(etaOf(view))}.`;
  }
  if (!ended.length) return "Nothing restores, and nothing had to be restored since the start.";
  const first = Math.min(...ended.map((row) => row.started_at));
  const last = Math.max(...ended.map((row) => row.ended_at));
  return `Nothing restores. ${plural(ended.length, "store partition")} took ${duration(last - first)} up to ${clock(last)}, ${plural(sum(ended.map((row) => row.restored)), "record")}.`;
}
