// The inspector: queries the state of all tabs repeatedly, draws it, and lets this tab take part.

import { openHoldfast } from "./holdfast.js";
import type { AcquireOptions, HolderInfo, ProjectLockLease, WaiterInfo } from "./holdfast.js";
import { byId, make, setText } from "./dom";
import { Lanes } from "./lanes";
import { loadName } from "./names";
import { Presence } from "./presence";
import { drawTree, placeName } from "./tree";
import { messageOf } from "./words";

/** A lease of this tab, from its request to its end. */
interface Mine { what: string; row: HTMLElement; text: HTMLElement; stop: AbortController; lease?: ProjectLockLease }

const name = loadName();
const mine = new Set<Mine>();
const lanes = new Lanes();
let again: ReturnType<typeof setTimeout> | undefined;

setText(byId("self"), name);
const presence = new Presence(() => look());
const holdfast = await openHoldfast({ ownerName: name });
presence.introduce(holdfast.ownerId, name);
holdfast.subscribe((event) => {
  if (["lock:waiting", "lock:acquired", "lock:released", "lock:readonly-entered"].includes(event.type)) {
    look();
    presence.nudge();
  }
  if (event.type === "lock:warning") announce(event.detail ?? event.warning);
});
holdfast.ready.then(() => {
  document.body.dataset["kind"] = "free";
  void refresh();
}, (error: unknown) => {
  document.body.dataset["kind"] = "failed";
  setText(byId("failure-text"), messageOf(error));
  byId("failure").hidden = false;
});

/** Queries again soon. Several calls cause one query. */
function look(): void {
  clearTimeout(again);
  again = setTimeout(() => void refresh(), 30);
}

async function refresh(): Promise<void> {
  clearTimeout(again);
  try {
    const { held, pending } = await holdfast.inspect();
    draw(held, pending);
  } catch {
    // The runtime starts again, as when the browser shows the page again. If it did not start at all, its failure is shown.
  }
  clearTimeout(again);
  again = setTimeout(() => void refresh(), document.hidden ? 3000 : 500);
}

function draw(held: HolderInfo[], pending: WaiterInfo[]): void {
  const nameOf = (info: HolderInfo | WaiterInfo): string =>
    info.ownerId === holdfast.ownerId ? "This tab" : presence.nameOf(info.ownerId, info.ownerName);
  drawTree(held, pending, nameOf);
  lanes.draw(held, pending, nameOf, Date.now());
}

function announce(text: string): void {
  setText(byId("announce"), text);
}

byId<HTMLFormElement>("take").addEventListener("submit", (event) => {
  event.preventDefault();
  void take();
});
for (const preset of document.querySelectorAll<HTMLButtonElement>(".preset")) {
  preset.addEventListener("click", () => {
    byId<HTMLInputElement>("paths").value = preset.dataset["paths"] ?? "";
    byId<HTMLInputElement>("slots").value = preset.dataset["slots"] ?? "1";
  });
}

/** The options in the form. */
function options(): AcquireOptions {
  const paths = byId<HTMLInputElement>("paths").value.split(",").map((path) => path.trim()).map((path) => path === "" ? [] : path.split("/"));
  const slots = Number(byId<HTMLInputElement>("slots").value);
  const within = [...mine].find(({ lease }) => lease?.leaseId === byId<HTMLSelectElement>("within").value)?.lease;
  return {
    ...(paths.length === 1 ? { path: paths[0]! } : { paths }),
    mode: byId<HTMLSelectElement>("mode").value as "exclusive" | "shared",
    ...(slots !== 1 && { slots }), ...(within && { within }),
    backoff: { maxRetries: 0 },
  };
}

async function take(): Promise<void> {
  const asked = options();
  const what = `${(asked.paths ?? [asked.path ?? []]).map((path) => placeName(path)).join(", ")} (${asked.slots ? "a slot" : asked.mode})`;
  const text = make("span", "text waiting", `${what}: asking`);
  const button = make("button", "", "Cancel");
  button.type = "button";
  const row = make("li", "", text, button);
  const own: Mine = { what, row, text, stop: new AbortController() };
  button.addEventListener("click", () => own.lease ? void own.lease.release() : own.row.classList.contains("over") ? own.row.remove() : own.stop.abort());
  byId("mine").append(row);
  mine.add(own);
  try {
    own.lease = await holdfast.acquireProjectLock({ ...asked, signal: own.stop.signal });
  } catch (error) {
    return end(own, button, messageOf(error));
  }
  own.text.className = "text";
  setText(own.text, `${what}: held, token ${own.lease.token}${own.lease.slot === undefined ? "" : `, slot ${own.lease.slot + 1}`}`);
  setText(button, "Release");
  announce(`${what} is held`);
  listEnclosing();
  const { signal } = own.lease;
  signal.addEventListener("abort", () => {
    if (signal.reason instanceof Error && "code" in signal.reason) end(own, button, messageOf(signal.reason));
    else {
      mine.delete(own);
      row.remove();
      listEnclosing();
    }
  });
}

function end(own: Mine, button: HTMLElement, why: string): void {
  delete own.lease;
  mine.delete(own);
  own.row.classList.add("over");
  own.text.className = "text ended";
  setText(own.text, `${own.what}: ${why}`);
  setText(button, "Dismiss");
  announce(`${own.what}: ${why}`);
  listEnclosing();
}

/** The leases inside which a new lease can be acquired. */
function listEnclosing(): void {
  const select = byId<HTMLSelectElement>("within");
  const chosen = select.value;
  const held = [...mine].filter(({ lease }) => lease);
  select.replaceChildren(new Option("no other lease", ""), ...held.map(({ what, lease }) => new Option(what, lease!.leaseId)));
  select.value = held.some(({ lease }) => lease!.leaseId === chosen) ? chosen : "";
}
