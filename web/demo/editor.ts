// The editor page: a plain text that saves itself, its writer, and its history. Open it in three tabs.

import { showAccount } from "./account.js";
import { Decide } from "./decide.js";
import { drawDiff } from "./diff-view.js";
import { byId, setAttribute, setText } from "./dom.js";
import { Machines, shared } from "./machines.js";
import { drawCompany, drawHistory, drawTabs } from "./lists.js";
import { friendlyName, loadName, saveName, shortName } from "./names.js";
import { Presence } from "./presence.js";
import { clock, elapsed } from "./time.js";
import { codeOf, messageOf, tellFailure } from "./words.js";
import { Writer, type WriterState } from "./writer.js";

const text = byId<HTMLTextAreaElement>("text");
const nameField = byId<HTMLInputElement>("name");
const button = (id: string): HTMLButtonElement => byId<HTMLButtonElement>(id);
const buttons = { ask: button("ask"), force: button("force"), flush: button("flush"), leave: button("leave") };
const keep = byId<HTMLInputElement>("keep");
const favicon = byId<HTMLLinkElement>("favicon");

type Kind = "opening" | "failed" | "holding" | "waiting" | "held" | "free";

let name = loadName();
nameField.value = name;
let compared: string | undefined;

const presence = new Presence(() => void writer.read());
const writer = new Writer({
  get text() { return text.value; },
  set text(value) {
    if (value === text.value) return;
    const { selectionStart, selectionEnd } = text;
    const atEnd = selectionStart === text.value.length; // typing continues after the loaded text
    text.value = value;
    text.setSelectionRange(atEnd ? value.length : selectionStart, atEnd ? value.length : selectionEnd);
  },
}, draw, () => presence.nudge(), shared ? { url: location.origin } : undefined);
if (shared) void showAccount();
const machines = shared ? new Machines(name, draw, () => void writer.read()) : undefined;

const decide = new Decide({
  sides: (draft) => writer.sides(draft),
  text: ({ id }) => writer.content(id),
  adopt: (draft) => writer.adopt(draft),
  use: (draft, merged) => writer.use(draft, merged),
  keep: (draft) => writer.resolve(draft, "generation"),
  discard: (draft) => writer.resolve(draft, "discard"),
  attempt,
  tell,
});

open();

function open(): void {
  void writer.open(name).then(() => {
    presence.introduce(writer.ownerId, name);
    presence.nudge();
  });
}

function kindOf({ runtime, readOnly, asking, save }: WriterState): Kind {
  if (runtime !== "open") return runtime;
  if (!readOnly) return "holding";
  if (asking || save.phase === "awaiting-lock") return "waiting";
  return save.holder ? "held" : "free";
}

const colours: Record<Kind, string> = { opening: "#6b7a73", failed: "#c0392b", holding: "#14805f", waiting: "#c98a10", held: "#4470b0", free: "#4470b0" };
let drawn: Kind | undefined;
let drawnRefused = false;

function draw(): void {
  const { state } = writer;
  const kind = kindOf(state);
  setAttribute(document.body, "data-kind", kind);
  const holder = state.save.holder ? presence.nameOf(state.save.holder.ownerId, state.save.holder.ownerName) : machines?.holder;
  const headline = headlineOf(kind, state, holder);
  setText(byId("answer"), headline);
  setText(byId("explain"), explainOf(kind, state));
  // A screen reader reads changes, not every save.
  setText(byId("announce"), `${headline} ${state.drafts.length === 0 ? "" : "There is text that is not saved. Decide about it below the editor."}`);
  setText(document.querySelector("title") as Element, `${kind === "holding" ? "Writing" : kind === "held" && !offline(kind, state) ? `${holder} writes` : "Reading"} · ${name}`);
  text.readOnly = state.readOnly;
  drawButtons(kind);
  drawMachines(state);
  drawFailure(state);
  decide.draw(state.drafts, state.readOnly, state.history[0]?.id ?? "");
  drawTabs(state, presence, writer.ownerId);
  drawHistory(state.history, compare, compared);
  button("restore").disabled = state.readOnly;
  if (drawn !== kind) {
    drawn = kind;
    if (kind === "holding") byId("outcome").hidden = true; // a refusal was before that
    favicon.href = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="${kind === "holding" ? 7 : 5.5}" fill="${kind === "holding" ? colours[kind] : "none"}" stroke="${colours[kind]}" stroke-width="${kind === "holding" ? 0 : 3}"/></svg>`)}`;
  }
  tick();
}

/** Whether the server does not know the user, or does not let the user write. */
const refused = (kind: Kind, { save }: WriterState): boolean => kind === "free" && save.lastError?.code === "not-allowed";

/** A holder without a name may be this tab itself, which waits for the server, and the server named the last one. */
const offline = (kind: Kind, { save }: WriterState): boolean => (kind === "held" || kind === "free") && save.online === false && !save.holder?.ownerName;

function headlineOf(kind: Kind, state: WriterState, holder: string | undefined): string {
  if (offline(kind, state)) return "Offline.";
  if (refused(kind, state)) return "You may not write.";
  switch (kind) {
    case "opening": return "One moment.";
    case "failed": return "Not running.";
    case "holding": return "You write.";
    case "waiting": return "Asking to write …";
    case "held": return `${holder} writes.`;
    case "free": return holder ? `${holder} writes.` : "Another tab writes.";
  }
}

function explainOf(kind: Kind, state: WriterState): string {
  const { save, pending, drafts } = state;
  if (kind === "holding") {
    if (save.lastError?.code === "quota-exceeded") return "The storage is full. Keep this tab open, or copy your text: it may not be kept when you close the tab. Holdfast tries again.";
    if (save.phase === "error") return `Could not save (${save.lastError?.code}). Holdfast tries again, and no typed text is lost.`;
    return "Your text is saved by itself. The other tabs read along.";
  }
  if (kind === "opening") return "The runtime is starting.";
  if (kind === "waiting") return "The tab that writes saves first, then hands over.";
  if (offline(kind, state)) return "The server does not answer, so you cannot write now. Your text is kept in this browser.";
  const unsaved = drafts.length > 0 ? " Text that is not saved waits below for your decision." : "";
  if (refused(kind, state)) return `The server does not let you write. Sign in, or ask for the permission.${unsaved}`;
  const place = pending.findIndex((waiter) => waiter.ownerId === writer.ownerId) + 1;
  return place > 0 ? `You read along, and are ${ordinal(place)} in line: when that tab is closed, ${place === 1 ? "you write" : "the tabs before you come first"}.${unsaved}` : `You read along.${unsaved}`;
}

const ordinal = (n: number): string => ["", "first", "second", "third"][n] ?? `number ${n}`;

const phases: Record<string, string> = {
  disabled: "off", idle: "saved", debouncing: "typing", "awaiting-lock": "asking", "writing-current": "saving", "updating-index": "saving",
  gc: "saving", readonly: "reading", error: "not saved",
};

/** The parts that change with time. */
function tick(): void {
  const { save, runtime } = writer.state;
  const at = save.lastSuccessAt ?? writer.state.history[0]?.savedAt;
  const phase = save.phase === "idle" && at === undefined ? "ready" : phases[save.phase] ?? save.phase;
  setText(byId("phase"), runtime === "open" ? phase : runtime);
  setAttribute(byId("phase"), "data-phase", save.phase);
  setText(byId("saved"), at === undefined ? "nothing saved yet" : `last save ${elapsed(Date.now() - at)} ago`);
}
setInterval(tick, 1000);

function drawButtons(kind: Kind): void {
  const reading = kind === "held" || kind === "free" || kind === "waiting";
  const focused = document.activeElement;
  buttons.ask.hidden = buttons.force.hidden = !reading;
  buttons.flush.hidden = byId("keep-label").hidden = kind !== "holding";
  buttons.leave.hidden = kind !== "holding" || !shared;
  for (const ask of [buttons.ask, buttons.force]) setAttribute(ask, "aria-disabled", String(kind === "waiting")); // it keeps the focus
  // A user that asked with the keyboard continues in the text.
  if (focused && (focused === buttons.ask || focused === buttons.force) && kind === "holding") text.focus();
}

function drawFailure({ runtime, failure }: WriterState): void {
  byId("failure").hidden = runtime !== "failed";
  if (runtime !== "failed") return;
  const told = tellFailure(failure);
  setText(byId("failure-title"), told.title);
  setText(byId("failure-text"), `${told.text} ${told.advice}`);
}

/** The known state of other machines. */
function drawMachines(state: WriterState): void {
  if (!machines) return;
  const kind = kindOf(state);
  if (refused(kind, state) !== drawnRefused) {
    drawnRefused = !drawnRefused;
    void showAccount(); // the user may have signed out in another tab
  }
  setText(byId("share-state"), refused(kind, state) ? "The server does not say who writes." : !machines.connected ? "The server does not answer. The holder may write until its lease ends."
    : machines.holder ? `${machines.holder} writes. Open this address in another browser, too.` : "Nobody writes.");
  drawCompany(machines.company.state);
}

/** Shows the changes that restoring a generation would make. */
async function compare(id: string): Promise<void> {
  compared = id;
  const generation = writer.state.history.find((g) => g.id === id);
  await attempt(async () => {
    const content = await writer.content(id);
    if (compared !== id) return; // the user has chosen another one, or closed this view
    byId("compare").hidden = false;
    setText(byId("compare-title"), `What restoring ${generation ? clock(generation.savedAt) : id} would change`);
    drawDiff(byId("compare-diff"), text.value, content);
    byId("compare-title").focus();
  });
  draw();
}

function closeCompare(): void {
  const opener = byId("history").querySelector<HTMLElement>('[aria-pressed="true"]');
  compared = undefined;
  byId("compare").hidden = true;
  opener?.focus(); // a user of the keyboard continues there
  draw();
}

const plain: Record<string, string> = {
  "handover-refused": "The tab that writes refused",
  "handover-busy": "Another tab asked first",
  "handover-timeout": "The tab that writes does not answer. “Take over” takes the lock",
  "data-corrupted": "This save is damaged; the others can be restored",
  "not-found": "That save is no longer kept",
};

/** Runs a user's action and shows its failure. */
async function attempt(action: () => Promise<void>): Promise<void> {
  byId("outcome").hidden = true;
  try {
    await action();
  } catch (failure) {
    tell(failure);
  }
}

function tell(failure: unknown): void {
  const outcome = byId("outcome");
  const code = (failure as { code?: string }).code ?? codeOf(failure) ?? "";
  const refusal = code === "handover-refused" ? messageOf(failure).replace(/^.*?: /, "") : "";
  setText(outcome, `${plain[code] ?? messageOf(failure)}${refusal ? `: ${refusal}` : ""}.`);
  outcome.hidden = false;
}

text.addEventListener("input", () => writer.typed());
const ask = (force: boolean): void => {
  if (kindOf(writer.state) !== "waiting") void attempt(() => writer.ask(force));
};
buttons.ask.addEventListener("click", () => ask(false));
buttons.force.addEventListener("click", () => ask(true));
buttons.flush.addEventListener("click", () => void attempt(() => writer.flush()));
buttons.leave.addEventListener("click", open); // saves, releases the lock, and joins the queue again
const showShared = (): void => { byId<HTMLInputElement>("share-box").checked = shared; };
showShared();
addEventListener("pageshow", showShared); // the browser may have kept the page, with the box as the user left it
if (shared) byId<HTMLAnchorElement>("another").href = "/?machines";
byId("share-box").addEventListener("change", () => location.assign(shared ? "/" : "/?machines"));
writer.keep = () => keep.checked; // the browser may have checked the box again as the user came back
button("reopen").addEventListener("click", open);
button("compare-close").addEventListener("click", closeCompare);
button("restore").addEventListener("click", () => void attempt(async () => {
  if (compared === undefined) return;
  await writer.restore(compared);
  closeCompare();
  text.focus();
}));

nameField.addEventListener("change", () => {
  name = nameField.value.trim() || friendlyName();
  nameField.value = name;
  saveName(name);
  machines?.company.rename(shortName(name));
  open();
});
nameField.addEventListener("keydown", (event) => {
  if (event.key === "Enter") nameField.blur(); // this makes the browser send "change"
});

// Closed tabs send no message.
setInterval(() => document.visibilityState === "visible" && void writer.look(), 1000);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && void writer.read());
