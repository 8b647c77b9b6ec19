// The lists beside the text: everyone that has the project open, and the saved generations.

import type { Generation, HolderInfo } from "./holdfast.js";
import { byId, make, setAttribute, setText } from "./dom.js";
import type { Presence } from "./presence.js";
import type { RoomState } from "./room-client.js";
import { clock } from "./time.js";
import type { WriterState } from "./writer.js";

const tabs = byId("tabs");
const history = byId("history");

/** Replaces the rows only if other ones are shown, so that nothing flickers and the focus stays. */
function fill(list: HTMLElement, shape: string, rows: () => Node[]): void {
  if (list.dataset["shape"] === shape) return;
  list.dataset["shape"] = shape;
  list.replaceChildren(...rows());
}

export function drawTabs({ held, pending }: WriterState, presence: Presence, self: string): void {
  const people = [
    ...held.filter((holder) => holder.mode === "exclusive").map((holder) => ({ id: holder.ownerId, name: nameOf(holder, presence), role: "writes" })),
    ...pending.map((waiter, i) => ({ id: waiter.ownerId, name: presence.nameOf(waiter.ownerId), role: i === 0 ? "reads, next in line" : "reads" })),
  ];
  fill(tabs, JSON.stringify([people, self]), () => people.length === 0 ? [make("li", "nobody", "Nobody")] : people.map(({ id, name, role }) => {
    const label = make("span", "name", name);
    if (id === self) label.append(" ", make("span", "you", "you"));
    return make("li", role === "writes" ? "writes" : "", label, make("span", "when", role));
  }));
}

let told: Map<number, string> | undefined;

/** Lists the people that have the project open on all machines. Screen readers also get arrivals and departures. */
export function drawCompany({ connected, room }: RoomState): void {
  byId("company").hidden = !connected || !room;
  if (!room) return;
  const people = room.participants.map(({ userNumber, name, isMe }) => ({ userNumber, name, isMe }));
  setText(byId("company-title"), `Here now (${people.length})`);
  fill(byId("here"), JSON.stringify(people), () => people.map(({ name, isMe }) => {
    const label = make("span", "name", name);
    if (isMe) label.append(" ", make("span", "you", "you"));
    return make("li", "", label);
  }));
  const others = new Map(people.filter(({ isMe }) => !isMe).map(({ userNumber, name }) => [userNumber, name]));
  const before = told ?? others;
  told = others;
  const came = [...others].filter(([number]) => !before.has(number)).map(([, name]) => `${name} is here.`);
  const left = [...before].filter(([number]) => !others.has(number)).map(([, name]) => `${name} has left.`);
  if (came.length + left.length > 0) setText(byId("company-news"), [...came, ...left].join(" "));
}

/** For a holder on another machine, the server's name for it is shown. */
function nameOf({ ownerId, ownerName, leaseId, strategy }: HolderInfo, presence: Presence): string {
  return strategy === "remote" && leaseId === undefined ? `${ownerId}, elsewhere` : presence.nameOf(ownerId, ownerName);
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function drawHistory(generations: Generation[], compare: (id: string) => void, compared: string | undefined): void {
  byId("history-empty").hidden = generations.length > 0;
  fill(history, JSON.stringify(generations.map(({ id, name }) => [id, name])), () => generations.map((generation) => {
    const show = make("button", "quiet", make("time", "", clock(generation.savedAt)), make("span", "size", size(generation.bytes)));
    show.type = "button";
    show.dataset["id"] = generation.id;
    show.append(make("span", "badge", generation.current ? "now" : generation.name ?? ""), make("span", "unseen", ", show the difference"));
    show.addEventListener("click", () => compare(generation.id));
    return make("li", "", show);
  }));
  for (const show of history.querySelectorAll("button")) setAttribute(show, "aria-pressed", String(show.dataset["id"] === compared));
  setText(byId("history-title"), generations.length > 0 ? `History (${generations.length})` : "History");
}
