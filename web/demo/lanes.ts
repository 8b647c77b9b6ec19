// A lane for each tab: the times in the last minute at which it held or waited.

import type { HolderInfo, WaiterInfo } from "./holdfast.js";
import { byId, make } from "./dom";
import { placeName, placesOf } from "./tree";

type Info = HolderInfo | WaiterInfo;

interface Span { kind: "holds" | "waits"; what: string; from: number; to: number; open: boolean }
interface Lane { name: string; spans: Map<string, Span> }

const minute = 60_000;
const space = "http://www.w3.org/2000/svg";

export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  draw(held: HolderInfo[], pending: WaiterInfo[], nameOf: (info: Info) => string, now: number): void {
    for (const { spans } of this.#lanes.values()) for (const span of spans.values()) span.open = false;
    const note = (kind: Span["kind"], info: Info): void => {
      let lane = this.#lanes.get(info.ownerId);
      if (!lane) this.#lanes.set(info.ownerId, lane = { name: "", spans: new Map() });
      lane.name = nameOf(info);
      const key = `${kind} ${info.leaseId ?? info.resource}`;
      const from = info.since || (lane.spans.get(key)?.from ?? now);
      lane.spans.set(key, { kind, what: placesOf(info).map(placeName).join(", "), from, to: now, open: true });
    };
    for (const info of held) note("holds", info);
    for (const info of pending) note("waits", info);
    for (const [owner, { spans }] of this.#lanes) {
      for (const [key, span] of spans) if (span.to < now - minute) spans.delete(key);
      if (spans.size === 0) this.#lanes.delete(owner);
    }
    byId("lanes-empty").hidden = this.#lanes.size > 0;
    byId("lanes").replaceChildren(...[...this.#lanes.values()].map((lane) => view(lane, now)),
      ...(this.#lanes.size ? [axis()] : []));
  }
}

function view({ name, spans }: Lane, now: number): HTMLElement {
  const svg = document.createElementNS(space, "svg");
  const all = [...spans.values()];
  svg.setAttribute("viewBox", "0 0 1000 32");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", all.map((s) => `${s.open ? s.kind : s.kind === "holds" ? "held" : "waited for"} ${s.what}, ${Math.round((s.to - s.from) / 1000)} s`).join("; "));
  for (const span of all) {
    const x = Math.max(0, 1000 - (now - span.from) / minute * 1000), end = 1000 - (now - span.to) / minute * 1000;
    const rect = document.createElementNS(space, "rect");
    rect.setAttribute("class", span.kind);
    const box = { x, y: span.kind === "holds" ? 3 : 18, width: Math.max(3, end - x), height: span.kind === "holds" ? 13 : 11, rx: 3 };
    for (const [key, value] of Object.entries(box)) rect.setAttribute(key, String(value));
    const title = document.createElementNS(space, "title");
    title.textContent = `${span.kind === "holds" ? "Held" : "Waited for"} ${span.what}`;
    rect.append(title);
    svg.append(rect);
  }
  return make("li", "", make("span", "name", name), svg as unknown as Node);
}

function axis(): HTMLElement {
  const item = make("li", "", make("span"), make("span", "axis", make("span", "", "a minute ago"), make("span", "", "now")));
  item.setAttribute("aria-hidden", "true");
  return item;
}
