// The shared worker of an origin. It brings the two ends of a MessageChannel to two tabs: the one that serves, and one that
// calls. It sees no call.

import type { Introduced, ToBroker } from "./lines";

interface Term {
  token: number;
  port?: MessagePort; // of the tab that serves
  waiting: { id: string; end: MessagePort }[];
}

/** The newest term of each service. */
const terms = new Map<string, Term>();

function term(name: string, token: number): Term | undefined {
  const known = terms.get(name);
  if (known && known.token > token) return undefined;
  const present = known?.token === token ? known : { token, waiting: [] };
  terms.set(name, present);
  return present;
}

function introduce({ port, waiting }: Term): void {
  if (!port) return; // the message of the serving tab is on its way
  for (const { id, end } of waiting.splice(0)) port.postMessage({ id } satisfies Introduced, [end]);
}

function receive(message: ToBroker, port: MessagePort, end: MessagePort | undefined): void {
  if ("ends" in message) {
    if (terms.get(message.ends)?.token === message.token) terms.delete(message.ends);
    return;
  }
  const present = term("serves" in message ? message.serves : message.calls, message.token);
  if (!present) return;
  if ("serves" in message) present.port = port;
  else if (end) present.waiting.push({ id: message.id, end });
  introduce(present);
}

addEventListener("connect", (event) => {
  const tab = (event as MessageEvent).ports[0]!;
  tab.onmessage = ({ data, ports }: MessageEvent<ToBroker>) => receive(data, tab, ports[0]);
});
