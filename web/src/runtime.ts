// The runtimes of a page: one for all Holdfasts that are loaded from the same place, also by other copies of this
// module.

import { within } from "./deadline";
import { asError, problem, type ProjectLockError } from "./errors";
import type { Config, Died, Host, Listener, Runtime } from "./protocol";

declare const __VERSION__: string;

interface Shared {
  runtime: Promise<Runtime>;
  /** The Holdfasts that use it, and the preloads, which do not close it. */
  users: Set<Listener>;
  open: Set<Listener>;
  /** The opening of the latest Holdfast. */
  opening?: Promise<Host>;
  end: AbortController;
  /** The next Holdfast starts another one. */
  forget(): void;
  sleep(): void;
}

type Start = (died: Died, ended: AbortSignal) => Runtime | Promise<Runtime>;

const runtimes = ((globalThis as Record<symbol, unknown>)[Symbol.for(`holdfast runtimes ${__VERSION__}`)] ??= new Map()) as Map<string, Shared>;

/** A runtime that the page shares. */
export interface SharedHost extends Host {
  /** The page enters the back/forward cache: no lock may be held meanwhile. */
  sleep(): void;
}

/** Serves a Holdfast in the runtime of that name, which starts if there is none. The last one that leaves ends it. */
export async function join(name: string, start: Start, config: Config, listener: Listener, ended: AbortSignal): Promise<SharedHost> {
  const shared = runtimes.get(name) ?? create(name, start);
  const since = performance.now();
  const closes = (): void => {
    shared.open.delete(listener);
    // A runtime that a Holdfast leaves after 20 seconds without having been served is dead or stuck.
    const stuck = !host && performance.now() - since > 2e4;
    if (stuck || !shared.open.size) shared.forget();
  };
  let host: Host | undefined, closing = false;
  shared.users.add(listener);
  shared.open.add(listener);
  ended.addEventListener("abort", () => {
    closes();
    shared.users.delete(listener);
    if (!shared.users.size) shared.end.abort();
    else if (host && !closing) void host.call("close").catch(() => undefined);
  });
  host = await (shared.opening = shared.runtime.then((runtime) => {
    listener.writes?.(runtime.journal);
    return runtime.open(config, listener.event);
  }));
  const { call, journal } = host;
  if (ended.aborted) void call("close").catch(() => undefined); // it left meanwhile
  return {
    journal,
    sleep: shared.sleep,
    call: async (method, ...args) => {
      if (method === "close") {
        closing = true;
        closes();
        await shared.opening!.catch(() => undefined); // the program ends with the last Holdfast that it knows
      }
      return call(method, ...args);
    },
  };
}

/** Loads the runtime of that name for a Holdfast to come. If that fails or takes longer than `limitMs`, the next call tries again. */
export async function preload(name: string, start: Start, limitMs: number): Promise<void> {
  const shared = runtimes.get(name) ?? create(name, start);
  let user: Listener;
  await within(new Promise<unknown>((resolve, reject) => {
    user = { event: () => undefined, died: reject, slept: resolve as () => void };
    shared.users.add(user); // so that nobody else ends the runtime meanwhile
    shared.runtime.then((runtime) => runtime.loaded()).then(resolve, reject);
  }), limitMs, tooSlow).catch((why: unknown) => {
    shared.forget();
    throw asError(why);
  }).finally(() => {
    shared.users.delete(user);
    if (runtimes.get(name) !== shared && !shared.users.size) shared.end.abort(); // it has failed, or the last Holdfast has left it meanwhile
  });
}

/** The failure of a download that takes longer than its limit. */
export const tooSlow = (): ProjectLockError => problem("load-failed", "the runtime did not load in time; try again");

function create(name: string, start: Start): Shared {
  const end = new AbortController();
  const users = new Set<Listener>();
  const forget = (): void => {
    if (runtimes.get(name) === shared) runtimes.delete(name);
  };
  const over = (tell: (user: Listener) => void): void => {
    forget();
    for (const user of [...users]) tell(user);
  };
  const died: Died = (...why) => over((user) => user.died(...why));
  const runtime = (async () => start(died, end.signal))();
  runtime.catch(forget);
  const shared: Shared = { runtime, users, open: new Set(), end, forget, sleep: () => over((user) => user.slept()) };
  runtimes.set(name, shared);
  return shared;
}
