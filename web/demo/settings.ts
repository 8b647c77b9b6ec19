// The options panel: the options of the next acquisition, and the host of the runtime.

import type { AcquireOptions, LockMode, OpenOptions } from "./holdfast.js";
import { byId, setText } from "./dom.js";
import { read, write } from "./names.js";

type Host = NonNullable<OpenOptions["host"]>;

const key = "holdfast-demo.settings";
const patience = byId<HTMLSelectElement>("patience");
const heartbeat = byId<HTMLInputElement>("heartbeat");
const ttl = byId<HTMLInputElement>("ttl");
const modeShared = byId<HTMLInputElement>("mode-shared");
const hostPage = byId<HTMLInputElement>("host-page");

export function host(): Host {
  return hostPage.checked ? "page" : "worker";
}

/** The current options. Invalid values are passed on, because the runtime describes the error best. */
export function acquireOptions(): AcquireOptions {
  const mode: LockMode = modeShared.checked ? "shared" : "exclusive";
  return {
    mode,
    heartbeatIntervalMs: Math.round(heartbeat.valueAsNumber * 1000),
    ttlMs: Math.round(ttl.valueAsNumber * 1000),
    ...({
      wait: { backoff: { maxRetries: 0 } },
      "retry-3": { backoff: { maxRetries: 3 } },
      "retry-1": { backoff: { maxRetries: 1 } },
      once: { timeoutMs: 0 },
    }[patience.value] ?? {}),
  };
}

/** Fills the panel from the last visit and keeps it. Calls back when the runtime must restart. */
export function setUpSettings(onHostChanged: () => void): void {
  restore();
  byId("options").addEventListener("change", (event) => {
    save();
    if ((event.target as HTMLInputElement).name === "host") onHostChanged();
  });
  byId("options").addEventListener("input", show);
  byId("pace-quick").addEventListener("click", () => setPace("2", "5"));
  byId("pace-default").addEventListener("click", () => setPace("10", "25"));
}

function setPace(heartbeatSeconds: string, ttlSeconds: string): void {
  heartbeat.value = heartbeatSeconds;
  ttl.value = ttlSeconds;
  save();
}

function restore(): void {
  let saved: Record<string, unknown> = {};
  try {
    saved = JSON.parse(read(key) ?? "{}") as Record<string, unknown>;
  } catch {
    // Written by another version of this page: start from the defaults.
  }
  heartbeat.value = String(saved["heartbeat"] ?? 10);
  ttl.value = String(saved["ttl"] ?? 25);
  patience.value = String(saved["patience"] ?? "wait");
  if (patience.selectedIndex < 0) patience.value = "wait";
  byId<HTMLInputElement>(saved["mode"] === "shared" ? "mode-shared" : "mode-exclusive").checked = true;
  byId<HTMLInputElement>(saved["host"] === "page" ? "host-page" : "host-worker").checked = true;
  show();
}

function save(): void {
  write(key, JSON.stringify({
    heartbeat: heartbeat.value, ttl: ttl.value, patience: patience.value,
    mode: modeShared.checked ? "shared" : "exclusive", host: host(),
  }));
  show();
}

function show(): void {
  const bad = !(heartbeat.valueAsNumber < ttl.valueAsNumber);
  byId("pace-problem").hidden = !bad;
  for (const field of [heartbeat, ttl]) field.setAttribute("aria-invalid", String(bad));
  setText(byId("options-brief"),
    `${modeShared.checked ? "shared" : "exclusive"}, ${heartbeat.value || "?"} s / ${ttl.value || "?"} s, ${host()}`);
}
