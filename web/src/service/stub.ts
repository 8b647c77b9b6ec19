// The object that a page gets from serve, before its module is loaded.

import { unlessAborted } from "../deadline";
import { problem } from "../errors";
import type { Handle } from "../handle";
import type { Server } from "./serve";

/** Begins a service. Calls wait until it has begun, and load it again if that failed. `leaving` contains it until it is closed. */
export function stub(leaving: Set<Pick<Handle, "leave">>, gone: unknown, load: (service: EventTarget, ended: AbortSignal) => Promise<Server>): object {
  const service = new EventTarget(), life = new AbortController(), { signal } = life;
  let server: Server | undefined, begun: Promise<Server> | undefined;
  const begin = (): Promise<Server> => begun ??= unlessAborted(load(service, signal).then((made) => server = made), signal,
    () => problem("aborted", "this service was closed", "call")).catch((why: unknown) => {
      begun = undefined;
      throw why;
    });
  const close = async (): Promise<void> => {
    leaving.delete(open);
    life.abort();
    await server?.close();
  };
  const open = { leave: close };
  leaving.add(open);
  if (gone) void close();
  begin().catch(() => undefined); // every call reports it
  return Object.assign(service, { serving: false, close, call: async (...call: unknown[]) => {
    try {
      call = structuredClone(call); // the page may change its objects before the service has begun
    } catch { /* the service moves ports, and refuses what cannot be copied */ }
    return (await begin()).call(...call as [string]);
  } });
}
