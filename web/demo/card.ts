// The status card: the answer to "May I write?", the dial and the facts. draw() runs after every change, tick() at
// every frame. Both only read the State.

import { byId, make, setAttribute, setText } from "./dom.js";
import type { Presence } from "./presence.js";
import { kindOf, otherHolders, queue, type Kind, type State } from "./state.js";
import { clock, elapsed, remaining } from "./time.js";
import { readonlyReason } from "./words.js";

interface Dial { part: number; value: string; label: string; mark?: number }

const card = byId("status");
const answer = byId("answer");
const explain = byId("explain");
const facts = byId("facts");
const arc = byId<SVGCircleElement>("arc");
const mark = byId<SVGPathElement>("mark");
const dialValue = byId("dial-value");
const dialLabel = byId("dial-label");
const announce = byId("announce");
const favicon = byId<HTMLLinkElement>("favicon");

// The icon in the tab strip shows the same answer as the card, so the user sees the answers of two tabs at once.
const colours: Record<Kind, string> = {
  opening: "#6b7a73", failed: "#c0392b", free: "#6b7a73", holding: "#14805f", waiting: "#c98a10", held: "#4470b0", readonly: "#c0392b",
};

let drawnIcon = "";

export function draw(state: State, presence: Presence, name: string): void {
  const kind = kindOf(state);
  setAttribute(document.body, "data-kind", kind);
  setAttribute(card, "data-kind", kind);
  const headline = headlineOf(kind, state, presence);
  setText(answer, headline);
  // Separate from the card and without running numbers, so that a screen reader gets changes but not every tick.
  setText(announce, kind === "readonly" ? `${headline}\n${plainReason(state)}` : headline);
  setText(document.querySelector("title") as Element, `${titles[kind]} · ${name}`);
  if (drawnIcon !== kind) {
    drawnIcon = kind;
    favicon.href = iconOf(kind);
  }
  tick(state, presence);
}

const titles: Record<Kind, string> = {
  opening: "Starting", failed: "Not running", free: "Free", holding: "Holding", waiting: "Waiting", held: "Held", readonly: "Read-only",
};

export function tick(state: State, presence: Presence): void {
  const now = Date.now();
  const kind = kindOf(state);
  setText(explain, explainOf(kind, state, presence, now));
  const dial = dialOf(kind, state, now);
  const length = Math.round(Math.min(1, Math.max(0, dial.part)) * 1000);
  setAttribute(arc, "stroke-dasharray", `${length} ${1000 - length}`);
  setText(dialValue, dial.value);
  setText(dialLabel, dial.label);
  mark.toggleAttribute("hidden", dial.mark === undefined);
  if (dial.mark !== undefined) setAttribute(mark, "transform", `rotate(${(dial.mark * 360).toFixed(1)} 80 80)`);
  drawFacts(factsOf(kind, state, now));
}

/** The answer in one word, and the reason on the next line. The style sheet keeps the line break. */
function headlineOf(kind: Kind, state: State, presence: Presence): string {
  switch (kind) {
    case "opening": return "One moment.";
    case "failed": return "No.\nThe runtime is not running.";
    case "holding": return state.lease?.mode === "shared" ? "Read along.\nYou share it." : "Yes.\nYou hold it.";
    case "waiting": return "Not yet.\nYou are waiting.";
    case "readonly": return "No.\nRead-only.";
    case "held": return `No.\nHeld by ${holderName(state, presence)}.`;
    case "free": return "Not yet.\nIt is free.";
  }
}

function explainOf(kind: Kind, state: State, presence: Presence, now: number): string {
  switch (kind) {
    case "opening": return "The lock runtime is starting.";
    case "failed": return "See above.";
    case "holding": {
      const since = state.lease?.acquiredAt ?? now;
      const rest = otherHolders(state).length;
      const company = rest > 0 ? `, together with ${rest} other ${rest === 1 ? "tab" : "tabs"}` : "";
      return `Since ${clock(since)}, for ${elapsed(now - since)}${company}.`;
    }
    case "waiting": {
      const next = state.waiting?.nextAttemptAt;
      const attempt = next === undefined || next <= now ? "Trying now" : `Next attempt in ${remaining(next - now)}`;
      return `${attempt}. ${holderSentence(state, presence, now)}`.trim();
    }
    case "readonly": return `${plainReason(state)} ${holderSentence(state, presence, now)}`.trim();
    case "held": {
      const since = otherHolders(state)[0]?.since;
      return since === undefined ? "Join the queue, or take it over." : `Since ${clock(since)}, for ${elapsed(now - since)}.`;
    }
    case "free": return "Nobody holds the lock. Acquire it to write.";
  }
}

function plainReason(state: State): string {
  if (!state.readonly) return "";
  const { what, advice } = readonlyReason(state.readonly.reason, state.readonly.error);
  return advice ? `${what}. ${advice}` : `${what}.`;
}

function holderName(state: State, presence: Presence): string {
  const [holder, ...rest] = otherHolders(state);
  if (!holder) return "nobody";
  const name = presence.nameOf(holder.ownerId, holder.ownerName);
  return rest.length > 0 ? `${name} and ${rest.length} more` : name;
}

function holderSentence(state: State, presence: Presence, now: number): string {
  const holder = otherHolders(state)[0];
  if (!holder) return "";
  const held = `${holderName(state, presence)} holds it`;
  return holder.since === undefined ? `${held}.` : `${held} since ${clock(holder.since)}, for ${elapsed(now - holder.since)}.`;
}

/**
 * The dial drains as time runs out. For a holder, its mark is the time of the next heartbeat, which fills it again. So
 * a glance shows the time between heartbeat and expiry.
 */
function dialOf(kind: Kind, state: State, now: number): Dial {
  if (kind === "holding" && state.lease) {
    const { expiresAt, ttlMs, nextHeartbeatAt } = state.lease;
    return {
      part: (expiresAt - now) / ttlMs, value: remaining(expiresAt - now), label: "until it expires",
      mark: (expiresAt - nextHeartbeatAt) / ttlMs,
    };
  }
  if (kind === "waiting" && state.waiting) {
    const { nextAttemptAt, delayMs } = state.waiting;
    const left = nextAttemptAt === undefined ? 0 : nextAttemptAt - now;
    return { part: left / delayMs, value: left > 0 ? remaining(left) : "now", label: "to the next attempt" };
  }
  if (kind === "held" || kind === "readonly") {
    const holder = otherHolders(state)[0];
    if (holder?.since !== undefined) return { part: 1, value: elapsed(now - holder.since), label: "held elsewhere" };
    return { part: kind === "held" ? 1 : 0, value: kind === "held" ? "Held" : "Ended", label: kind === "held" ? "elsewhere" : "acquire again" };
  }
  return kind === "free" ? { part: 0, value: "Free", label: "for the asking" } : { part: 0, value: "…", label: "" };
}

type Fact = readonly [id: string, term: string, value: string];

function factsOf(kind: Kind, state: State, now: number): Fact[] {
  const lease = state.lease;
  if (kind === "holding" && lease) {
    return [
      ["next-heartbeat", "Next heartbeat", lease.nextHeartbeatAt > now ? `in ${remaining(lease.nextHeartbeatAt - now)}` : "now"],
      ["expires", "Expires", clock(lease.expiresAt)],
      ["token", "Token", String(lease.token)],
      ["lease-id", "Lease", lease.leaseId],
    ];
  }
  if (kind === "waiting" && state.waiting) {
    const line = queue(state);
    const place = line.findIndex((waiter) => waiter.ownerId === state.ownerId) + 1;
    return [
      ["place", "Place in the queue", place > 0 ? `${place} of ${line.length}` : "…"],
      ["retry", "Retry", String(state.waiting.retry)],
      ["waiting-since", "Waiting since", `${clock(state.waiting.since)}, ${elapsed(now - state.waiting.since)}`],
    ];
  }
  if (kind === "readonly" && state.readonly) {
    return [
      ["reason", "Reason", state.readonly.reason],
      ["code", "Error", state.readonly.error.code],
      ["readonly-since", "Since", clock(state.readonly.at)],
    ];
  }
  const holder = kind === "held" ? otherHolders(state)[0] : undefined;
  if (!holder) return [];
  const rows: Fact[] = [["holder-mode", "Mode", holder.mode]];
  if (holder.expiresAt !== undefined) {
    rows.push(["holder-expires", "Renewed until", clock(holder.expiresAt) + (holder.expiresAt < now ? " (late)" : "")]);
  }
  if (holder.token !== undefined) rows.push(["holder-token", "Token", String(holder.token)]);
  return rows;
}

let drawnFacts = "";

/** Rebuilds the list only if other facts are shown; a tick changes texts. */
function drawFacts(rows: Fact[]): void {
  const shape = rows.map(([id]) => id).join(" ");
  if (shape !== drawnFacts) {
    drawnFacts = shape;
    facts.replaceChildren(...rows.map(([id, term]) => {
      const value = make("dd");
      value.id = id;
      return make("div", "", make("dt", "", term), value);
    }));
  }
  for (const [id, , text] of rows) setText(byId(id), text);
}

function iconOf(kind: Kind): string {
  const inside = kind === "holding" ? `<circle cx="8" cy="8" r="7" fill="${colours[kind]}"/>`
    : `<circle cx="8" cy="8" r="5.5" fill="none" stroke="${colours[kind]}" stroke-width="3"/>`;
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${inside}</svg>`)}`;
}
