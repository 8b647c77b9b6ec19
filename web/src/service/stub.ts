// The object that a page gets from serve, before its module is loaded.

import type { Handle } from "../handle";
import type { Server } from "./serve";

/** Begins a service. Calls wait until it has begun. `leaving` contains it until it is closed. */
export function stub(leaving: Set<Pick<Handle, "leave">>, begin: (service: EventTarget) => Promise<Server>): object {
  const service = new EventTarget(), begun = begin(service);
  begun.catch(() => undefined); // every call reports it
  const close = async (): Promise<void> => {
    leaving.delete(open);
    await (await begun).close();
  };
  const open = { leave: () => close().catch(() => undefined) };
  leaving.add(open);
  return Object.assign(service, { serving: false, close, call: async (...call: unknown[]) => (await begun).call(...call as [string]) });
}
