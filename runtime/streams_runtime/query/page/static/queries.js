// The query box: a store's records by the endpoints of queries, from whichever instance has them.

import { byId, element, show } from "./dom.js";
import { count, plural } from "./format.js";
import { Problem, ask, askRecords, segment, shown } from "./source.js";

const LIMIT = 50;
const KEY = { name: "key", label: "Key", required: true };
const TIMES = [
  { name: "fromTime", label: "From time", hint: "2026-01-31T08:00:00Z" },
  { name: "toTime", label: "To time", hint: "2026-01-31T09:00:00Z" },
];
const KEYS = [{ name: "from", label: "From key" }, { name: "to", label: "To key" }];
const WAYS = {
  "key-value": {
    "one key": { path: "keys", fields: [KEY] },
    "keys that begin with": { path: "prefix", fields: [{ name: "prefix", label: "Prefix", required: true }] },
    "keys between": { path: "range", fields: KEYS },
    "all, from the first on": { path: "all", fields: [] },
  },
  window: {
    "one key's windows": { path: "windows/keys", fields: [KEY, ...TIMES] },
    "windows of keys between": { path: "windows/range", fields: [...KEYS, ...TIMES] },
    "all windows": { path: "windows/all", fields: TIMES },
  },
  session: {
    "one key's sessions": { path: "sessions/keys", fields: [KEY, ...TIMES] },
    "sessions of keys between": { path: "sessions/range", fields: [...KEYS, ...TIMES] },
  },
};
const REMEDIES = {
  retry: "Ask again in a moment.",
  rediscover: "Ask again: the partition has moved, or its instance is gone.",
  "do-not-retry": "Asking again does not help.",
  "fix-the-name": "Correct the name of the store.",
  "fix-the-query": "Correct the query.",
  "go-to": "Ask the instance that has the partition.",
  authenticate: "Present another token.",
};

let types = {};
let latest = 0;

export function prepare() {
  byId("query-store").addEventListener("change", ways);
  byId("query-what").addEventListener("change", fields);
  byId("query").addEventListener("submit", (event) => {
    event.preventDefault();
    query();
  });
}

export function setStores(stores) {
  types = Object.fromEntries(stores.map((store) => [store.name, store.type]));
  const select = byId("query-store");
  const names = stores.map((store) => store.name);
  if (JSON.stringify([...select.options].map((each) => each.value)) === JSON.stringify(names)) return;
  select.replaceChildren(...stores.map(({ name, type }) => element("option", { value: name, text: `${name} (${type})` })));
  show(byId("query"), names.length > 0);
  if (names.length) ways();
  else byId("query-answer").replaceChildren(element("p", { className: "quiet", text: "The topology has no store that can be queried." }));
}

export function choose(store) {
  if (store in types) {
    byId("query-store").value = store;
    ways();
  } else {
    byId("query-answer").replaceChildren(element("p", { className: "quiet", text: `The store ${store} is internal: queries do not see it.` }));
  }
  byId("stores").scrollIntoView();
  (byId("query-fields").querySelector("input") ?? byId("query-store")).focus({ preventScroll: true });
}

const way = () => WAYS[types[byId("query-store").value]][byId("query-what").value];

function ways() {
  const names = Object.keys(WAYS[types[byId("query-store").value]] ?? {});
  byId("query-what").replaceChildren(...names.map((name) => element("option", { value: name, text: name })));
  fields();
}

function fields() {
  const before = Object.fromEntries([...byId("query-fields").querySelectorAll("input")].map((each) => [each.name, each.value]));
  byId("query-fields").replaceChildren(...way().fields.map(({ name, label, required, hint }) => {
    const input = element("input", { name, placeholder: hint, autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    input.value = before[name] ?? "";
    // An empty text is a key like any other; a prefix of nothing would be all.
    if (required && name === "prefix") input.required = true;
    return element("label", {}, `${label} `, input);
  }));
}

async function query() {
  const number = (latest += 1);
  const answer = byId("query-answer");
  answer.replaceChildren(element("p", { className: "quiet", text: "Asked …" }));
  const begun = performance.now();
  let fresh;
  try {
    const found = await records();
    const spent = Math.max(Math.round(performance.now() - begun), 1);
    fresh = answered(found, spent);
  } catch (error) {
    fresh = [problem(error)];
  }
  if (number === latest) answer.replaceChildren(...fresh);
}

async function records() {
  const store = byId("query-store").value;
  const { path, fields: wanted } = way();
  const values = Object.fromEntries([...byId("query-fields").querySelectorAll("input")].map((each) => [each.name, each.value.trim() === "" && each.name !== "key" ? "" : each.value]));
  const parameters = new URLSearchParams();
  for (const { name } of wanted) if (name !== "key" && values[name]) parameters.set(name, values[name]);
  if (byId("query-stale").checked) parameters.set("stale", "true");
  const rest = wanted.includes(KEY) ? `${path}/${segment(values.key)}` : path;
  return wanted.includes(KEY) ? byKey(store, rest, path, parameters) : everywhere(store, rest, parameters);
}

const url = (rest, parameters) => `${rest}${parameters.size ? `?${parameters}` : ""}`;

// One key: here, or at the instance that is named as its owner.
async function byKey(store, rest, path, parameters) {
  if (path !== "keys") parameters.set("limit", LIMIT);
  const local = `stores/${segment(store)}/${rest}`;
  try {
    return { ...(await askRecords(url(local, parameters))), from: "this instance" };
  } catch (error) {
    const owner = error instanceof Problem && error.document.status === 421 ? error.document.owner : null;
    if (!owner) throw error;
    return { ...(await askRecords(url(`relay/${new URL(owner).host}/${local}`, parameters))), from: owner };
  }
}

// Records of many partitions: every instance that has some of them, put together in the order of the keys' bytes.
async function everywhere(store, rest, parameters) {
  const directory = await ask(`stores/${segment(store)}/owners`);
  const own = (await ask("instances")).instances.find((each) => each.own);
  const byUrl = Map.groupBy(directory.owners, (each) => each.url);
  const missing = directory.partitions - directory.owners.length;
  parameters.set("limit", LIMIT);
  parameters.set("keyBytes", "true");
  const answers = await Promise.all([...byUrl].map(([owner, partitions]) => {
    const mine = new URLSearchParams(parameters);
    for (const { partition } of partitions) mine.append("partition", partition);
    const local = `stores/${segment(store)}/${rest}`;
    return askRecords(url(owner === own?.url ? local : `relay/${new URL(owner).host}/${local}`, mine));
  }));
  const found = answers.flatMap((each) => each.records.map((record) => ({ ...record, bytes: atob(record.keyBytes) })));
  // A binary string compares as its bytes do.
  found.sort((one, other) => (one.bytes < other.bytes ? -1 : one.bytes > other.bytes ? 1 : 0));
  return {
    records: found.slice(0, LIMIT),
    more: found.length > LIMIT || answers.some((each) => each.more),
    from: plural(byUrl.size, "instance"),
    missing,
  };
}

function answered({ records: found, more, from, missing }, spent) {
  const parts = [];
  if (missing > 0) {
    parts.push(element("p", { className: "notice", text: `${plural(missing, "partition")} of the store ${missing === 1 ? "is" : "are"} on no instance at the moment: this answer is not whole. Ask again in a moment.` }));
  }
  const none = found.length === 1 && found[0].value === null;
  const what = none ? "The store has no such key" : found.length ? `${plural(found.length, "record")}${more ? `, the first of more; at most ${count(LIMIT)} are shown` : ""}` : "No records";
  parts.push(element("p", { className: "quiet", text: `${what}. From ${from} in ${count(spent)} ms.` }));
  if (found.length && !none) parts.push(table(found));
  return parts;
}

function table(found) {
  const windowed = found.some((record) => record.window);
  const head = ["key", ...(windowed ? ["from", "to"] : []), "value"].map((text) => element("th", { scope: "col", text }));
  const rows = found.map((record) => {
    const window = windowed ? [record.window?.start ?? "", record.window?.end ?? ""].map((text) => element("td", { className: "words", text })) : [];
    return element("tr", {}, element("td", { className: "name", text: shown(record.key) }), ...window,
      element("td", {}, element("pre", { text: shown(record.value) })));
  });
  return element("div", { className: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

function problem(error) {
  const document = error instanceof Problem ? error.document : { title: "No answer", detail: `The instance did not answer: ${error.message}`, remedy: "retry" };
  const list = element("dl", {}, element("dt", { text: "What" }), element("dd", { text: document.detail }));
  if (REMEDIES[document.remedy]) list.append(element("dt", { text: "What to do" }), element("dd", { className: "remedy", text: REMEDIES[document.remedy] }));
  if (document.owner) list.append(element("dt", { text: "Owner" }), element("dd", { className: "name", text: document.owner }));
  return element("div", { className: "error" }, element("h2", { text: `✖ ${document.title}` }), list);
}
