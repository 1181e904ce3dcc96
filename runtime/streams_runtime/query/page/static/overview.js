// What the page shows, from the states of the instances: no elements, no questions.

const LASTING_S = 25; // without an offset: the default of the commit's interval is shorter
const STEADY = 0.02; // of a rate: a smaller difference is none

// `states`: by instance {document, at (seconds), problem}. `only`: the one instance that is shown, or "".
export function overview(states, instances, only, rates) {
  const shown = instances.filter(({ instance }) => !only || instance === only);
  const known = shown.map((each) => ({ ...each, ...states.get(each.instance) })).filter((each) => each.document);
  const lag = lagRows(known, rates);
  const counters = total(known.map(({ document }) => document.counters ?? {}));
  return {
    instances: instances.map((each) => instanceRow(each, states.get(each.instance), rates)),
    lag,
    topics: topics(lag),
    counters,
    processed: sum(known.map(({ instance }) => rates.of(`processed ${instance}`))),
    tasks: known.flatMap(({ instance, document }) => (document.tasks ?? []).map((task) => ({ ...task, instance }))),
    standbys: known.flatMap(({ instance, document }) => (document.standbys ?? []).map((each) => ({ ...each, instance }))),
    restoration: known.flatMap(({ instance, document }) =>
      (document.restoration ?? []).map((row) => ({ ...row, instance })),
    ),
    restorationInAll: known.map(({ document }) => document.restoration_in_all).filter(Boolean),
    dropped: droppedRows(known, rates),
    problems: known
      .flatMap(({ instance, document }) => (document.problems ?? []).map((each) => ({ ...each, instance })))
      .sort((one, other) => other.at - one.at),
    errors: errors(shown, known),
    peeks: known.flatMap(({ document }) => document.peeks ?? []),
  };
}

// Of instances that end, and of those whose last words are known.
function errors(shown, known) {
  const ending = known.filter(({ document }) => document.error);
  const ended = shown.filter((each) => each.lastWord?.class && !ending.some(({ instance }) => instance === each.instance));
  return [
    ...ending.map(({ instance, document }) => ({ instance, state: document.state, ...document.error })),
    ...ended.map(({ instance, lastWord }) => ({ instance, ...lastWord })),
  ];
}

// What the rates are made of: to be noted for each state that came.
export function note(rates, instance, document, at) {
  rates.note(`processed ${instance}`, document.counters?.records_processed, at);
  for (const row of document.lag ?? []) {
    rates.note(`read ${row.topic} ${row.partition}`, row.position, at);
    rates.note(`arrives ${row.topic} ${row.partition}`, row.end, at);
  }
  for (const row of droppedOf(document)) rates.note(dropKey(instance, row), row.records, at);
}

const dropKey = (instance, row) => `dropped ${instance} ${row.step} ${row.reason}`;

// Without rows by step there are sums of the whole instance.
export function droppedOf(document) {
  if (document.dropped) return document.dropped;
  const { records_dropped: left = 0, late_records: late = 0, deserialization_errors: unreadable = 0 } = document.counters ?? {};
  return [["left out", left], ["too late", late], ["not readable", unreadable]]
    .filter(([, records]) => records)
    .map(([reason, records]) => ({ step: null, reason, records }));
}

function droppedRows(known, rates) {
  const rows = new Map();
  for (const { instance, document } of known) {
    for (const row of droppedOf(document)) {
      const key = `${row.step} ${row.reason}`;
      const found = rows.get(key) ?? { step: row.step, reason: row.reason, records: 0, recent: null };
      found.records += row.records;
      found.recent = sum([found.recent, rates.more(dropKey(instance, row))]);
      rows.set(key, found);
    }
  }
  return [...rows.values()].filter((row) => row.records).sort((one, other) => other.records - one.records);
}

function lagRows(known, rates) {
  const rows = known.flatMap(({ instance, document }) => (document.lag ?? []).map((row) => lagRow(row, instance, rates, document.paused)));
  return rows.sort((one, other) => (other.lag ?? -1) - (one.lag ?? -1) || one.topic.localeCompare(other.topic) || one.partition - other.partition);
}

function lagRow(row, instance, rates, paused) {
  const key = `${row.topic} ${row.partition}`;
  const [read, arrives] = [rates.of(`read ${key}`), rates.of(`arrives ${key}`)];
  const becomes = paused && row.lag ? { pace: "paused", left: null } : pace(row.lag, read, arrives, rates.seconds(`read ${key}`));
  return { ...row, instance, read, arrives, ...becomes };
}

// What becomes of a lag at these rates (a second), seen over so many `seconds`: {pace, left (seconds)}.
// caught-up, catches-up, keeps-up (`left` is how far behind), falls-behind, waits (`left`: for so long), stands, unknown.
export function pace(lag, read, arrives, seconds) {
  if (!lag) return { pace: lag === 0 ? "caught-up" : "unknown", left: lag === 0 ? 0 : null };
  if (read === null) return { pace: "unknown", left: null };
  const less = read - (arrives ?? 0);
  if (less > STEADY * read) return { pace: "catches-up", left: lag / less };
  if (read === 0) return { pace: seconds >= LASTING_S ? "stands" : "waits", left: seconds };
  return less < -STEADY * read ? { pace: "falls-behind", left: null } : { pace: "keeps-up", left: lag / read };
}

export const isBehind = (row) => row.pace === "stands" || row.pace === "falls-behind";

function topics(lag) {
  const found = {};
  for (const row of lag) {
    const topic = (found[row.topic] ??= { partitions: 0, lag: null, read: null, arrives: null, worst: row });
    topic.partitions += 1;
    for (const name of ["lag", "read", "arrives"]) topic[name] = sum([topic[name], row[name]]);
  }
  return found;
}

function instanceRow({ instance, url, own, inGroup, lastWord }, { document, problem } = {}, rates) {
  if (!document) return { instance, url, own, inGroup, state: lastWord?.state ?? null, ended: Boolean(lastWord), problem };
  const tasks = document.tasks ?? [];
  return {
    instance,
    url,
    own,
    inGroup,
    problem,
    state: document.state,
    paused: Boolean(document.paused),
    withoutSpark: document.state === "RUNNING" && document.spark_ready === false,
    tasks: tasks.length,
    running: tasks.filter((task) => task.state === "RUNNING").length,
    processed: rates.of(`processed ${instance}`),
    lag: sum((document.lag ?? []).map((row) => row.lag)),
    restoring: (document.restoration_in_all?.remaining ?? 0) + (document.warm_up?.remaining ?? 0),
  };
}

// What is to be said behind the state of these rows.
export function besides(rows) {
  const said = { paused: rows.some((row) => row.paused), "Spark is starting": rows.some((row) => row.withoutSpark) };
  return Object.keys(said).filter((words) => said[words]).map((words) => `, ${words}`).join("");
}

// The state of all that are shown: that of the one which is least well.
const WORST_FIRST = ["ERROR", "PENDING_ERROR", "PENDING_SHUTDOWN", "CREATED", "REBALANCING", "RUNNING", "NOT_RUNNING"];

export function worst(rows) {
  const states = rows.map((row) => row.state).filter(Boolean);
  return WORST_FIRST.find((state) => states.includes(state)) ?? states[0] ?? null;
}

// null: none of them is known.
export function sum(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((one, other) => one + other, 0) : null;
}

function total(documents) {
  const found = {};
  for (const each of documents) for (const [name, value] of Object.entries(each)) found[name] = (found[name] ?? 0) + value;
  return found;
}
