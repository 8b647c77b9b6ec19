// The modules that a page loads when it needs them.

import type * as Contract from "../holdfast";
import { asError } from "./errors";
import type { Handle } from "./handle";
import type { Opening } from "./options";
import type { Start } from "./service/candidate";
import type { Server } from "./service/serve";
import { loaded } from "./start";

export interface Modules {
  autosave(): Promise<typeof import("./start-autosave")>;
  /** Shows a page that listens what was saved last, if that can be read. */
  preview(handle: Handle, options: Contract.AutoSaveOptions | undefined): Promise<void>;
  serve(root: string, service: EventTarget, name: string, start: Start): Promise<Server>;
}

/** `open` opens a Holdfast of this browser for another project. */
export const modules = ({ baseURL, root, server }: Opening, open: (root: string) => Contract.Holdfast): Modules => ({
  autosave: () => loaded(baseURL, "autosave", () => import("./holdfast-autosave.js")) as ReturnType<Modules["autosave"]>,
  preview: async (handle, options) => {
    await undefined; // the page adds its listeners
    if (!handle.hears("autosave:preview") || options?.enabled === false) return;
    const { preview } = await loaded(baseURL, "preview", () => import("./holdfast-preview.js")) as typeof import("./preview");
    await preview(handle, root, server, options ?? {});
  },
  serve: async (...args) => (await loaded(baseURL, "serve", () => import("./holdfast-serve.js")) as typeof import("./service/serve")).serve(baseURL, asError, open, ...args),
});
