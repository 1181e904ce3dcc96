// Numbers, durations and states, for people.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const UNKNOWN = "–";

export const count = (value) => (value === null || value === undefined ? UNKNOWN : WHOLE.format(value));

export function short(value) {
  if (value === null || value === undefined) return UNKNOWN;
  for (const [least, sign] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= least) return `${trimmed(value / (sign === "k" ? 1e3 : least))}${sign}`;
  }
  return WHOLE.format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value > 0 && value < 10 ? trimmed(value) : short(value);
}

const trimmed = (value) => Number(value.toPrecision(Math.abs(value) >= 100 ? 4 : 3)).toString();

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 1) return seconds === 0 ? "0 s" : "under 1 s";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${trimmed(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const part = (value, whole) => (whole > 0 ? `${Math.floor((value / whole) * 100)} %` : UNKNOWN);

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

// Not by colour alone: each kind of state has a sign of its own.
const KINDS = {
  ok: ["●", ["RUNNING"]],
  bad: ["✖", ["ERROR", "PENDING_ERROR", "DEAD", "CLOSED"]],
  idle: ["□", ["NOT_RUNNING", "CREATED", "SUSPENDED", "PAUSED"]],
};

export function kindOf(state) {
  return Object.keys(KINDS).find((kind) => KINDS[kind][1].includes(state)) ?? "busy";
}

export const signed = (state) => `${KINDS[kindOf(state)]?.[0] ?? "◐"} ${state}`;

export const plural = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;
