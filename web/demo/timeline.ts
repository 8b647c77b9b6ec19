// The event log: a row per event, the newest first, since the newest is what one has just caused. Heartbeats in a
// row share a line, because a lease held for an hour would otherwise bury everything else.

import type { ProjectLockEvent } from "./holdfast.js";
import { byId, icon, make, setText } from "./dom.js";
import { clock, preciseClock, remaining } from "./time.js";
import { tell, tellError, type Telling } from "./words.js";

const rowsKept = 200;
const payloadsKept = 20; // of one folded row

interface Row {
  item: HTMLLIElement;
  type: string;
  text: HTMLElement;
  time: HTMLTimeElement;
  raw: HTMLPreElement;
  details: HTMLDetailsElement;
  payloads: unknown[];
  beats: number;
}

const list = byId("timeline");
const empty = byId("timeline-empty");
let newest: Row | undefined;

export function record(event: ProjectLockEvent): void {
  if (newest && folds(newest, event)) fold(newest, event);
  else newest = add(tell(event), event.type, event.at, event);
}

/** A failed call that caused no event. */
export function recordFailure(error: unknown, operation: string): void {
  newest = add(tellError(error, operation), "call-failed", Date.now(), error);
}

export function clearTimeline(): void {
  list.replaceChildren();
  empty.hidden = false;
  newest = undefined;
}

/** "Next heartbeat in …" belongs to the previous row, a grant or a renewal. Renewals join the previous row. */
function folds(row: Row, event: ProjectLockEvent): boolean {
  if (event.type === "lock:renew-scheduled") return row.type === "lock:acquired" || row.type === "lock:renewed";
  return event.type === "lock:renewed" && row.type === "lock:renewed";
}

function fold(row: Row, event: ProjectLockEvent): void {
  row.payloads.push(event);
  if (row.payloads.length > payloadsKept) row.payloads.shift();
  const next = event.type === "lock:renew-scheduled" ? `, next heartbeat in ${remaining(event.nextHeartbeatInMs)}` : "";
  if (event.type === "lock:renewed") {
    row.beats += 1;
    row.item.dataset["count"] = String(row.beats);
    setTime(row.time, event.at);
  }
  if (row.beats > 1) setText(row.text, `Heartbeat ×${row.beats}, last ${clock(Number(row.time.dataset["at"]))}${next}`);
  else if (next) row.text.append(next);
  if (row.details.open) showRaw(row);
}

function add(telling: Telling, type: string, at: number, payload: unknown): Row {
  const item = make("li", `tone-${telling.tone}`);
  item.dataset["type"] = type;
  const text = make("span", "text", telling.text);
  const time = make("time");
  const raw = make("pre");
  raw.tabIndex = 0; // it scrolls, so the keyboard must be able to reach it
  const words = make("span", "telling", text);
  const { code, advice } = telling;
  if (code || advice) {
    words.append(make("span", "advice", ...(code ? [make("code", "", code), " "] : []), advice ?? ""));
    if (code) item.dataset["code"] = code;
  }
  const details = make("details", "", make("summary", "", icon(telling.icon), words, time), raw);
  item.append(details);
  const row: Row = { item, type, text, time, raw, details, payloads: [payload], beats: type === "lock:renewed" ? 1 : 0 };
  setTime(time, at);
  details.addEventListener("toggle", () => showRaw(row));
  list.prepend(item);
  while (list.children.length > rowsKept) list.lastElementChild?.remove();
  empty.hidden = true;
  return row;
}

function setTime(element: HTMLTimeElement, at: number): void {
  element.dataset["at"] = String(at);
  element.dateTime = new Date(at).toISOString();
  setText(element, preciseClock(at));
}

/** Written only while it is open, because a payload costs more than its row. */
function showRaw(row: Row): void {
  const many = row.payloads.length > 1;
  setText(row.raw, row.details.open ? JSON.stringify(many ? row.payloads : row.payloads[0], plain, 2) : "");
}

const errorFields = ["name", "code", "message", "operation", "retryable", "resource"];

/** Errors and signals have no enumerable fields of their own, so JSON would show them as empty. */
function plain(_key: string, value: unknown): unknown {
  if (value instanceof AbortSignal) return value.aborted ? "AbortSignal (aborted)" : "AbortSignal";
  if (value instanceof Error) {
    const fields = value as unknown as Record<string, unknown>;
    return Object.fromEntries(errorFields.filter((field) => fields[field] !== undefined).map((field) => [field, fields[field]]));
  }
  return value;
}
