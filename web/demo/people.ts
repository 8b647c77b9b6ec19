// The holders and waiters of all tabs of this browser.

import type { HolderInfo, WaiterInfo } from "./holdfast.js";
import { byId, make, setText } from "./dom.js";
import type { Presence } from "./presence.js";
import type { State } from "./state.js";
import { clock, elapsed } from "./time.js";

interface Person { key: string; name: string; self: boolean; since: number | undefined; note: string }

const holders = byId("holders");
const waiters = byId("waiters");

export function drawPeople(state: State, presence: Presence): void {
  const now = Date.now();
  // A lock at another place in the tree is named; the project's own lock is not.
  const place = (resource: string): string => state.resource === undefined || resource === state.resource ? "" : ` · ${resource}`;
  const of = (info: HolderInfo | WaiterInfo, index: number, name: string): Person => ({
    key: `${info.ownerId} ${info.resource} ${index}`, name, self: info.ownerId === state.ownerId,
    since: info.since, note: `${info.mode}${place(info.resource)}`,
  });
  fill(holders, state.held.map((info, index) => of(info, index, presence.nameOf(info.ownerId, info.ownerName))), "Nobody", now);
  fill(waiters, state.pending.map((info, index) => of(info, index, presence.nameOf(info.ownerId))), "Nobody", now);
}

/** Rows stay while the same people are in them, so that text can be selected and nothing flickers. */
function fill(list: HTMLElement, people: Person[], nobody: string, now: number): void {
  const shape = people.map((person) => `${person.key}|${person.name}`).join("\n");
  if (list.dataset["shape"] !== shape) {
    list.dataset["shape"] = shape;
    list.replaceChildren(...(people.length > 0 ? people.map(row) : [make("li", "nobody", nobody)]));
  }
  people.forEach((person, index) => {
    const when = list.children[index]?.querySelector(".when");
    if (!when) return;
    const since = person.since === undefined ? "" : ` · since ${clock(person.since)}, ${elapsed(now - person.since)}`;
    setText(when, `${person.note}${since}`);
  });
}

function row(person: Person): HTMLLIElement {
  const name = make("span", "name", person.name);
  const item = make("li", person.self ? "self" : "", name, make("span", "when"));
  if (person.self) name.append(" ", make("span", "you", "you"));
  return item;
}
