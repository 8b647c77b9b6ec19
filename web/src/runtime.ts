// The runtimes of a page: one for all Holdfasts that are loaded from the same place, also of other copies of this module.

import type { Config, Died, Host, Listener, Runtime } from "./protocol";

declare const __VERSION__: string;

interface Shared {
  runtime: Promise<Runtime>;
  /** Those that use it, and those of them that do not close it. */
  users: Set<Listener>;
  open: Set<Listener>;
  end: AbortController;
  sleep(): void;
}

/** A runtime that somebody leaves after that time without having been served is dead or stuck. */
const stuckMs = 2e4;

const key = Symbol.for(`holdfast runtimes ${__VERSION__}`);
const runtimes = ((globalThis as Record<symbol, unknown>)[key] ??= new Map()) as Map<string, Shared>;

/** A runtime that the page shares. */
export interface SharedHost extends Host {
  /** The page is put to sleep: nobody may hold anything meanwhile. */
  sleep(): void;
}

/** Serves a Holdfast in the runtime of that name, which starts where there is none. The last one that leaves ends it. */
export async function join(name: string, start: (died: Died, ended: AbortSignal) => Runtime | Promise<Runtime>, config: Config, listener: Listener, ended: AbortSignal): Promise<SharedHost> {
  const shared = runtimes.get(name) ?? create(name, start);
  const since = performance.now();
  const closes = (): void => {
    shared.open.delete(listener);
    const stuck = !host && performance.now() - since > stuckMs;
    if ((stuck || !shared.open.size) && runtimes.get(name) === shared) runtimes.delete(name); // the next one starts another
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
  host = await (await shared.runtime).open(config, listener.event);
  const { call, journal } = host;
  if (ended.aborted) void call("close").catch(() => undefined); // it left meanwhile
  return {
    journal,
    sleep: shared.sleep,
    call: (method, ...args) => {
      if (method === "close") {
        closing = true;
        closes();
      }
      return call(method, ...args);
    },
  };
}

function create(name: string, start: (died: Died, ended: AbortSignal) => Runtime | Promise<Runtime>): Shared {
  const end = new AbortController();
  const users = new Set<Listener>();
  const over = (tell: (user: Listener) => void): void => {
    if (runtimes.get(name) === shared) runtimes.delete(name);
    for (const user of [...users]) tell(user);
  };
  const died: Died = (...why) => over((user) => user.died(...why));
  const shared: Shared = { users, open: new Set(), end, sleep: () => over((user) => user.slept()), runtime: (async () => start(died, end.signal))() };
  runtimes.set(name, shared);
  return shared;
}
