// The demo page: one tab of an editor that asks whether it may write. Open it twice.

import { draw, tick } from "./card.js";
import { byId, setText } from "./dom.js";
import { friendlyName, loadName, saveName } from "./names.js";
import { drawPeople } from "./people.js";
import { Session } from "./session.js";
import { acquireOptions, host, setUpSettings } from "./settings.js";
import { kindOf, otherHolders } from "./state.js";
import { clearTimeline, record, recordFailure } from "./timeline.js";
import { messageOf, tellFailure } from "./words.js";

const nameField = byId<HTMLInputElement>("name");
const buttons = {
  acquire: byId<HTMLButtonElement>("acquire"),
  renew: byId<HTMLButtonElement>("renew"),
  release: byId<HTMLButtonElement>("release"),
  takeover: byId<HTMLButtonElement>("takeover"),
};

let name = loadName();
nameField.value = name;

const session = new Session({ changed: show, event: record, failed: recordFailure });

setUpSettings(reopen);
reopen();

function reopen(): void {
  void session.open({ ownerName: name, host: host() });
}

function show(): void {
  draw(session.state, session.presence, name);
  drawPeople(session.state, session.presence);
  showButtons();
  showFailure();
}

function showButtons(): void {
  const { state } = session;
  const kind = kindOf(state);
  const open = state.runtime === "open" && !state.busy;
  const asking = state.acquiringSince !== undefined;
  setText(buttons.acquire, asking ? "Cancel" : "Acquire");
  buttons.acquire.dataset["action"] = asking ? "cancel" : "acquire";
  setEnabled({
    // A click that ends the typing of a name comes while the new runtime starts. It takes effect after that.
    acquire: (open || state.runtime === "opening") && kind !== "holding",
    renew: open && kind === "holding",
    release: open && kind === "holding",
    takeover: open && kind !== "holding" && otherHolders(state).length > 0,
  });
}

/**
 * A disabled button loses the focus, and a keyboard user would have to start over. So the focus moves to the button
 * that makes sense next.
 */
function setEnabled(enabled: Record<keyof typeof buttons, boolean>): void {
  const keys = Object.keys(buttons) as (keyof typeof buttons)[];
  const focused = keys.find((key) => buttons[key] === document.activeElement);
  // During a renewal or release, every button is disabled for a moment. The focus does not move then.
  const next = focused && !enabled[focused] ? keys.find((key) => enabled[key]) : undefined;
  for (const key of keys) {
    if (key !== focused || enabled[key] || next) buttons[key].disabled = !enabled[key];
    buttons[key].setAttribute("aria-disabled", String(!enabled[key]));
  }
  if (next) buttons[next === "renew" && focused === "acquire" ? "release" : next].focus();
}

function showFailure(): void {
  const { state } = session;
  const failed = state.runtime === "failed";
  byId("failure").hidden = !failed;
  if (!failed) return;
  const { title, text, advice } = tellFailure(state.failure);
  setText(byId("failure-title"), title);
  setText(byId("failure-text"), text);
  setText(byId("failure-advice"), advice);
  const code = (state.failure as { code?: string } | undefined)?.code;
  setText(byId("failure-raw"), `${code ? `${code}: ` : ""}${messageOf(state.failure)}`);
}

/** Runs an action on a click, unless the button only looks enabled (see setEnabled). */
function onClick(button: HTMLButtonElement, action: (event: MouseEvent) => void): void {
  button.addEventListener("click", (event) => {
    if (button.getAttribute("aria-disabled") !== "true") action(event);
  });
}

onClick(buttons.acquire, (event) => {
  if (session.state.acquiringSince === undefined) void session.acquire(acquireOptions());
  // The second click of a double click does not mean to stop waiting.
  else if (event.detail < 2) session.cancel();
});
onClick(buttons.renew, () => void session.renew());
onClick(buttons.release, () => void session.release());
onClick(buttons.takeover, () => void session.takeOver(acquireOptions()));
onClick(byId<HTMLButtonElement>("reopen"), reopen);
onClick(byId<HTMLButtonElement>("clear"), clearTimeline);

nameField.addEventListener("change", () => {
  name = nameField.value.trim() || friendlyName();
  nameField.value = name;
  saveName(name);
  reopen();
});
nameField.addEventListener("keydown", (event) => {
  if (event.key === "Enter") nameField.blur(); // this makes the browser send "change"
});

// Other pages may use the lock too, and they send no nudges.
setInterval(() => {
  if (document.visibilityState === "visible") void session.look();
}, 1000);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void session.look();
});

// The running numbers. The browser runs no animation frame in a hidden tab. Thirty frames per second are enough for a
// dial of this size, and one per second is enough for users that prefer reduced motion.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let lastTick = 0;
function frame(now: number): void {
  if (now - lastTick >= (calm.matches ? 1000 : 32)) {
    lastTick = now;
    tick(session.state, session.presence);
    drawPeople(session.state, session.presence);
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
