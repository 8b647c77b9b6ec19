// The ways of a message between two tabs. A BroadcastChannel of two tabs always works. A MessagePort takes half the time and
// can move ports, but only a shared worker can bring its two ends to two tabs.

/** One way to the other tab. */
export interface Line {
  /** Whether it can move ports, and reports the end of the other tab after the last message of that tab. */
  readonly direct: boolean;
  post(message: object | number, moved?: Transferable[]): void;
  close(): void;
}

/** In place of a message that cannot be read in another process: a compiled module, or memory that is shared. */
export const unreadable = { unreadable: true } as const;

/** A line over a BroadcastChannel that only two tabs open. */
export function channelLine(name: string, receive: (message: never, line: Line) => void): Line {
  const channel = new BroadcastChannel(name);
  let open = true;
  const line: Line = {
    direct: false,
    post: (message) => { if (open) channel.postMessage(message); },
    close: () => {
      open = false;
      channel.close();
    },
  };
  channel.onmessage = channel.onmessageerror = ({ type, data }: MessageEvent) => { if (open) receive((type === "message" ? data : unreadable) as never, line); };
  return line;
}

/** A line over a MessagePort. `gone` is called when the other end is closed or its tab has ended, if the browser reports that. */
export function portLine(port: MessagePort, receive: (message: never, line: Line) => void, gone: () => void): Line {
  let open = true;
  const line: Line = {
    direct: true,
    post: (message, moved = []) => { if (open) port.postMessage(message, moved); },
    close: () => {
      open = false;
      port.close();
    },
  };
  port.addEventListener("close", () => { if (open) gone(); });
  port.onmessage = port.onmessageerror = ({ type, data }: MessageEvent) => { if (open) receive((type === "message" ? data : unreadable) as never, line); };
  return line;
}

/** Messages to the shared worker. */
export type ToBroker = { serves: string; token: number } | { calls: string; token: number; id: string } | { ends: string; token: number };

/** The message of the shared worker to a serving tab, with one end of a MessageChannel. */
export interface Introduced { id: string }

/**
 * Connects to the shared worker, which may have died with the tab that started it: each term connects again. Returns nothing
 * where there are no shared workers, or not for this page.
 */
export function broker(base: URL | undefined): MessagePort | undefined {
  try {
    const worker = base ? new SharedWorker(new URL("holdfast-broker.js", base), { type: "module", name: "holdfast" })
      : new SharedWorker(new URL("./holdfast-broker.js", import.meta.url), { type: "module", name: "holdfast" });
    worker.onerror = (event) => event.preventDefault(); // calls go over the channels
    return worker.port;
  } catch {
    return undefined;
  }
}
