// The modules that a page loads when it needs them.

import type * as Contract from "../holdfast";
import { asError } from "./errors";
import type { Early } from "./early";
import type { Handle } from "./handle";
import type { When } from "./lend";
import type { Acquisition, Opening } from "./options";
import type { Start } from "./service/candidate";
import type { Server } from "./service/serve";
import { loaded } from "./start";

export interface Modules {
  autosave(): Promise<typeof import("./start-autosave")>;
  /** Shows a page that listens what was saved last, if that can be read. Lets a page edit, if that is certain, while `loads` returns true. */
  preview(handle: Handle, options: Contract.AutoSaveOptions | undefined, ...when: When): Promise<Early | null | undefined>;
  /** Takes the browser's locks for an acquisition that waits for the runtime. */
  take(acquisition: Acquisition, ...when: When): void;
  serve(root: string, name: string, start: Start, service: EventTarget, ended: AbortSignal): Promise<Server>;
}

/** `open` opens a Holdfast of this browser for another project. */
export const modules = (opening: Opening, open: (root: string) => Contract.Holdfast): Modules => {
  const { baseURL, root, server, strategy } = opening;
  /** Absent with a server, and over a file: then Go alone knows who may write. Also absent if it cannot be loaded. */
  const early = async (): Promise<typeof import("./early") | undefined> =>
    (server || strategy === "file-lock" ? undefined : loaded(baseURL, "early", () => import("./holdfast-early.js")).catch(() => undefined)) as never;
  let saves: ReturnType<Modules["autosave"]>;
  return {
    autosave: () => saves = loaded(baseURL, "autosave", () => import("./holdfast-autosave.js")) as ReturnType<Modules["autosave"]>,
    preview: async (handle, options, loads, ended) => {
      await undefined; // the page adds its listeners
      const { ready } = handle; // it may begin again while the modules load
      if (options?.enabled === false) return undefined;
      navigator.storage?.getDirectory?.().catch(() => undefined); // the first access takes the browser tens of milliseconds
      const rights = loads() && early();
      const reader = await loaded(baseURL, "preview", () => import("./holdfast-preview.js")) as typeof import("./preview");
      return reader.preview(handle, ready, opening, options ?? {}, [rights, saves], loads, ended);
    },
    take: (...asked) => void early().then((module) => module?.take(root, ...asked)),
    serve: async (...args) => (await loaded(baseURL, "serve", () => import("./holdfast-serve.js")) as typeof import("./service/serve")).serve(baseURL, asError, open, ...args),
  };
};
