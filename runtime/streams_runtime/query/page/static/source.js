// Questions to this instance: with the token, if there is one; a problem document is thrown as a Problem.

const KEPT = "streams-token";
const TIMEOUT_MS = 15000;

export class Problem extends Error {
  constructor(document, retryAfter) {
    super(document.detail ?? document.title ?? "no answer");
    this.document = document;
    this.retryAfter = retryAfter;
  }

  get asksForToken() {
    return this.document.status === 401 || this.document.status === 403;
  }
}

let token = sessionStorage.getItem(KEPT);

export const hasToken = () => token !== null;

export function setToken(text) {
  token = text;
  if (text === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, text);
}

// Numbers that JavaScript would round keep their digits, where the browser gives them.
class Digits {
  constructor(text) {
    this.text = text;
  }

  toJSON() {
    return JSON.rawJSON(this.text);
  }
}

export function parsed(text) {
  return JSON.parse(text, (_, value, context) => {
    const source = context?.source;
    return typeof value === "number" && source && JSON.rawJSON && String(value) !== source ? new Digits(source) : value;
  });
}

const LINE = 100; // characters; longer values are shown on several lines

export function shown(value) {
  if (typeof value === "string") return value;
  const line = JSON.stringify(value);
  return line.length > LINE ? JSON.stringify(value, null, 2) : line;
}

async function answered(path) {
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
    throw new Problem({ status: 401, title: "Token", detail: "it has characters that no token has. Copy it as a whole, without quotes." });
  }
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (answer.ok) return answer;
  let found = { status: answer.status, title: `HTTP ${answer.status}`, detail: `${path}: ${answer.statusText}` };
  try {
    found = { ...found, ...(await answer.json()) };
  } catch {
    // A proxy in between answers with something else.
  }
  throw new Problem(found, answer.headers.get("Retry-After"));
}

export const ask = async (path) => (await answered(path)).json();

// One JSON document, or the lines of an answer of many records; a last line that is missing or a problem is thrown.
export async function askRecords(path) {
  const answer = await answered(path);
  const text = await answer.text();
  if (!(answer.headers.get("Content-Type") ?? "").includes("ndjson")) return { records: [parsed(text)], more: false };
  const lines = text.split("\n").filter(Boolean).map(parsed);
  const last = lines.pop() ?? {};
  if (last.problem) throw new Problem(last.problem);
  if (!last.complete) throw new Problem({ title: "IncompleteAnswerException", detail: "The answer broke off. Ask again." });
  return { records: lines, more: Boolean(last.complete.more) };
}

export const segment = (text) => encodeURIComponent(text).replaceAll(".", "%2E");
