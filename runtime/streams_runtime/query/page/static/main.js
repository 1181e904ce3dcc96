// Asks for states every two seconds while the page is looked at, and shows what they come to.

import { byId, element, setClass, setText, show } from "./dom.js";
import { Drawing } from "./drawing.js";
import { count, clock, kindOf, signed } from "./format.js";
import { Course, Rates } from "./history.js";
import { besides, note, overview, sum, worst } from "./overview.js";
import * as queries from "./queries.js";
import * as sections from "./sections.js";
import { Problem, ask, hasToken, segment, setToken } from "./source.js";

const INTERVAL_MS = 2000;
const OTHERS_AT_ONCE = 8; // further instances take turns

const underWay = new Set();
const states = new Map(); // by instance: {document, at, problem}
const rates = new Rates();
const courses = { processed: new Course(), lag: new Course() };
let instances = [];
let topology = null;
let stores = null;
let drawing = null;
let turn = 0;
let answeredAt = null;
let held = false;
let timer = null;
let asking = false;
let announced = "";

async function round() {
  const own = await ask("state");
  answeredAt = Date.now() / 1000;
  take(own.instance, own, performance.now() / 1000);
  instances = await known(own);
  topology ??= await ask("topology");
  drawing ??= new Drawing(topology, queries.choose);
  if (stores === null) queries.setStores((stores = (await ask("stores")).stores));
  const names = new Set(instances.map((each) => each.instance));
  for (const name of states.keys()) if (!names.has(name)) states.delete(name);
  for (const each of instances) if (each.url === null) states.delete(each.instance); // it has ended, or its address is nobody's
  // Not waited for: one that does not answer keeps nobody else from being shown.
  for (const each of othersOf(own.instance)) lookAt(each);
}

// One that can't be listed, since the brokers can't be asked, does not hide the state of this one.
async function known(own) {
  try {
    const found = (await ask("instances")).instances;
    if (found.some((each) => each.instance === own.instance)) return found;
  } catch (error) {
    if (!(error instanceof Problem) || error.asksForToken) throw error;
  }
  return instances.length ? instances : [{ instance: own.instance, url: own.url, own: true, inGroup: true }];
}

function othersOf(own) {
  const others = instances.filter((each) => each.instance !== own && each.url !== null);
  const begin = others.length > OTHERS_AT_ONCE ? (turn * OTHERS_AT_ONCE) % others.length : 0;
  turn += 1;
  return [...others.slice(begin), ...others.slice(0, begin)].slice(0, OTHERS_AT_ONCE);
}

async function lookAt({ instance }) {
  if (underWay.has(instance)) return;
  underWay.add(instance);
  try {
    take(instance, await ask(`instances/${segment(instance)}/state`), performance.now() / 1000);
  } catch (error) {
    const problem = error instanceof Problem ? error.message : "no answer in time";
    states.set(instance, { ...states.get(instance), problem });
  } finally {
    underWay.delete(instance);
  }
  if (!byId("overview").hidden) draw();
}

function take(instance, document, at) {
  states.set(instance, { document, at, problem: null });
  note(rates, instance, document, at);
}

// --- what is shown

function draw() {
  const only = byId("scope").value;
  const view = overview(states, instances, only, rates);
  setText(byId("application"), topology?.applicationId ?? "Streams application");
  document.title = `${topology?.applicationId ?? "Streams application"}: ${worst(view.instances) ?? "…"}`;
  headline(view, only);
  scopes();
  sections.errors(view);
  sections.figures(view, courses);
  sections.counts(view);
  sections.instances(view, choose);
  sections.problems(view);
  sections.lag(view);
  sections.dropped(view);
  sections.tasks(view, topology);
  sections.restoration(view);
  drawing?.update(view);
  announce(view);
  return view;
}

function headline(view, only) {
  const rows = view.instances.filter((row) => !only || row.instance === only);
  const state = worst(rows) ?? "…";
  setText(byId("state"), `${signed(state)}${besides(rows)}`);
  setClass(byId("state"), `state ${kindOf(state)}`);
}

function scopes() {
  const select = byId("scope");
  const wanted = ["", ...instances.map((each) => each.instance)];
  if (JSON.stringify([...select.options].map((each) => each.value)) === JSON.stringify(wanted)) return;
  const chosen = select.value;
  select.replaceChildren(
    element("option", { value: "", text: instances.length === 1 ? "all instances" : `all ${count(instances.length)} instances` }),
    ...instances.map(({ instance, own }) => element("option", { value: instance, text: `${instance}${own ? " (this one)" : ""}` })),
  );
  select.value = wanted.includes(chosen) ? chosen : "";
}

function choose(instance) {
  byId("scope").value = byId("scope").value === instance ? "" : instance;
  draw();
}

// Changes of states and fresh errors, not every figure.
function announce(view) {
  const said = [
    ...view.instances.filter((row) => row.state).map((row) => `${row.instance} is ${row.state}`),
    ...view.errors.map((error) => `${error.instance} ended by ${error.class}`),
  ].join(". ");
  if (said !== announced) setText(byId("announce"), said);
  announced = said;
}

function connection() {
  const target = byId("connection");
  const seconds = answeredAt === null ? null : Math.round(Date.now() / 1000 - answeredAt);
  const silent = answeredAt !== null && !held && seconds > 7;
  setText(target, held ? `held since ${clock(answeredAt ?? Date.now() / 1000)}` : silent ? `no answer for ${seconds} s` : answeredAt ? `live, ${clock(answeredAt)}` : "");
  setClass(target, silent ? "connection silent" : "connection");
}

// --- access and failures

function askForToken(problem) {
  document.body.classList.add("locked");
  show(byId("overview"), false);
  show(byId("access"), true);
  show(byId("forget"), hasToken());
  const refused = hasToken() ? `The token that was given does not count: ${problem.message}` : problem.message;
  setText(byId("access-why"), refused);
  setText(byId("access-command"), "kubectl create token ACCOUNT --audience AUDIENCE");
  setText(byId("connection"), "");
  byId("token").focus();
}

function silence(error) {
  const since = answeredAt === null ? "" : ` What is shown is of ${clock(answeredAt)}.`;
  const problem = error instanceof Problem ? error.message : "This instance does not answer; it may have ended, or be starting again.";
  const next = error instanceof Problem ? "" : " Its last words are in its log: streamsapp run prints where that is; in a cluster, kubectl describe shows them at the pod and at the application.";
  setText(byId("silent"), `${problem}${since}${next} It is asked again every two seconds.`);
  show(byId("silent"), true);
  const said = byId("state").textContent;
  if (answeredAt !== null && !said.startsWith("?")) setText(byId("state"), `? was${said.replace(/^\S+/, "")}`);
  setClass(byId("state"), "state busy");
  show(byId("overview"), true);
}

async function look() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  try {
    await round();
    document.body.classList.remove("locked");
    show(byId("access"), false);
    show(byId("silent"), false);
    show(byId("overview"), true);
    show(byId("forget"), hasToken());
    const view = draw();
    courses.processed.add(view.processed);
    courses.lag.add(sum(view.lag.map((row) => row.lag)));
  } catch (error) {
    if (error instanceof Problem && error.asksForToken) {
      asking = false;
      askForToken(error);
      return; // until somebody gives one
    }
    if (!(error instanceof Problem) && !["TypeError", "TimeoutError", "AbortError"].includes(error.name)) console.error(error);
    silence(error);
  }
  asking = false;
  connection();
  if (!held && !document.hidden) timer = setTimeout(look, INTERVAL_MS);
}

byId("access-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value.trim());
  byId("token").value = "";
  look();
});
byId("forget").addEventListener("click", () => {
  setToken(null);
  location.reload();
});
byId("scope").addEventListener("change", draw);
byId("pause").addEventListener("click", () => {
  held = !held;
  byId("pause").setAttribute("aria-pressed", String(held));
  connection();
  if (!held) look();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !held && byId("access").hidden) look();
});
sections.onMore(draw);
queries.prepare();
setInterval(connection, 1000);
look();
