// The tree of places with their holders and waiters, and an edge from each waiter to each holder that it waits for. The
// edges repeat what the text says.

import type { HolderInfo, WaiterInfo } from "./holdfast.js";
import { byId, make } from "./dom";
import { elapsed } from "./time";

type Info = HolderInfo | WaiterInfo;

interface Place { path: string[]; children: Map<string, Place>; held: HolderInfo[]; pending: WaiterInfo[] }

const space = "http://www.w3.org/2000/svg";

/** The name of a place: its components, or the project. */
export function placeName(path: string[]): string {
  return path.length ? path.join(" / ") : "the project";
}

/** The place of a holder or waiter. One that does not answer shows its place only in the name of its lock. */
export function placesOf(info: Info): string[][] {
  const [, below] = info.resource.split(/\/\/(.*)/s);
  return info.paths ?? [below ? below.split("/").map(decode) : []];
}

function decode(component: string): string {
  try {
    return decodeURIComponent(component);
  } catch {
    return component;
  }
}

export function drawTree(held: HolderInfo[], pending: WaiterInfo[], nameOf: (info: Info) => string): void {
  const root: Place = { path: [], children: new Map(), held: [], pending: [] };
  const at = (path: string[]): Place => path.reduce((place, id, depth) => {
    let child = place.children.get(id);
    if (!child) place.children.set(id, child = { path: path.slice(0, depth + 1), children: new Map(), held: [], pending: [] });
    return child;
  }, root);
  for (const path of [["u1", "a1", "r1"], ["u1", "a1", "r2"], ["pool"]]) at(path);
  for (const info of held) for (const path of placesOf(info)) at(path).held.push(info);
  for (const info of pending) for (const path of placesOf(info)) at(path).pending.push(info);

  const names = new Map(([...held, ...pending] as Info[]).map((info) => [info.ownerId, nameOf(info)]));
  const view = (place: Place): HTMLElement => {
    const people = make("span", "people", ...slots(place, nameOf), ...place.pending.map((info) => waiter(info, nameOf, names)));
    for (const person of people.children) (person as HTMLElement).dataset["place"] = place.path.join("\0");
    const item = make("li", place.held.length + place.pending.length ? "" : "idle",
      make("div", "row", make("span", "place", place.path.at(-1) ?? "project"), people));
    const below = [...place.children.values()].sort((a, b) => a.path.join("/").localeCompare(b.path.join("/")));
    if (below.length) item.append(make("ul", "", ...below.map(view)));
    return item;
  };
  byId("tree").replaceChildren(view(root));
  waiting = pending;
  drawEdges();
}

let waiting: WaiterInfo[] = [];
new ResizeObserver(() => drawEdges()).observe(byId("tree"));

/** The holders; with slots, a place for each slot. */
function slots(place: Place, nameOf: (info: Info) => string): HTMLElement[] {
  const known = [...place.held, ...place.pending].map((info) => info.slots ?? 1);
  const count = Math.max(1, ...known);
  if (count === 1 || count > 16) return place.held.map((info) => holder(info, nameOf));
  const whole = place.held.filter((info) => info.slot === undefined);
  return [...whole.map((info) => holder(info, nameOf)), ...Array.from({ length: count }, (_, slot) => {
    const info = place.held.find((h) => h.slot === slot);
    return info ? holder(info, nameOf) : make("span", "chip slot vacant", `slot ${slot + 1} free`);
  })];
}

function chip(kind: string, info: Info, text: string): HTMLElement {
  const element = make("span", `chip ${kind}`, text);
  element.dataset["owner"] = info.ownerId;
  if (info.leaseId) element.dataset["lease"] = info.leaseId;
  return element;
}

function holder(info: HolderInfo, nameOf: (info: Info) => string): HTMLElement {
  const since = info.since ? `, ${elapsed(Date.now() - info.since)}` : "";
  const slot = info.slot === undefined ? info.mode : `slot ${info.slot + 1}`;
  return chip(info.slot === undefined ? "holds" : "holds slot", info, `${nameOf(info)} holds (${slot}${info.token ? `, token ${info.token}` : ""}${since})`);
}

function waiter(info: WaiterInfo, nameOf: (info: Info) => string, names: Map<string, string>): HTMLElement {
  const whom = info.waitsFor.map((owner) => names.get(owner) ?? "somebody").join(", ");
  const since = info.since ? `, ${elapsed(Date.now() - info.since)}` : "";
  return chip("waits", info, `${nameOf(info)} waits${whom ? ` for ${whom}` : ""} (${info.mode}${since})`);
}

const split = (place = ""): string[] => place === "" ? [] : place.split("\0");

/** Whether a place is or contains another; "" and [] are the project. */
function contains(path: string[], other = ""): boolean {
  const below = split(other);
  return path.every((id, depth) => below[depth] === id);
}

/** Draws a line from each waiter to the holders that it waits for. */
function drawEdges(): void {
  const svg = byId<SVGSVGElement>("edges");
  const origin = svg.getBoundingClientRect();
  const chips = [...byId("tree").querySelectorAll<HTMLElement>(".chip[data-owner]")];
  const lines: SVGElement[] = [];
  for (const info of waiting) {
    const from = chips.find((c) => c.classList.contains("waits") && c.dataset["lease"] === info.leaseId && c.dataset["owner"] === info.ownerId);
    if (!from) continue;
    const inTheWay = (c: HTMLElement): boolean => c.classList.contains("holds") && info.waitsFor.includes(c.dataset["owner"] ?? "")
      && placesOf(info).some((path) => contains(path, c.dataset["place"]) || contains(split(c.dataset["place"]), path.join("\0")));
    for (const to of chips.filter(inTheWay)) {
      const a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
      const beside = Math.abs(a.top - b.top) < 4; // in one row: below the text instead of through it
      const x1 = a.left + (beside ? a.width / 2 : 0) - origin.left, y1 = (beside ? a.bottom : a.top + a.height / 2) - origin.top;
      const x2 = b.left + (beside ? b.width / 2 : 0) - origin.left, y2 = (beside ? b.bottom : b.top + b.height / 2) - origin.top;
      const bend = Math.max(0, Math.min(x1, x2) - 30 - Math.abs(y2 - y1) / 6);
      const path = document.createElementNS(space, "path");
      path.setAttribute("d", beside ? `M${x1} ${y1}C${x1} ${y1 + 16} ${x2} ${y2 + 16} ${x2} ${y2}` : `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`);
      const end = document.createElementNS(space, "circle");
      for (const [key, value] of Object.entries({ cx: x2, cy: y2, r: 4 })) end.setAttribute(key, String(value));
      lines.push(path, end);
    }
  }
  svg.replaceChildren(...lines);
}
