// Checks of options that only the page can make; Go checks the rest.

import type { AcquireOptions, OpenOptions } from "../holdfast";
import { problem, type ProjectLockError } from "./errors";
import { Lease } from "./lease";
import type { Loan } from "./lend";

const invalid = (option: string, why: string): Error => problem("invalid-argument", `${option} ${why}`);

/** Options for Go, with the ones that stay in the page. */
type Checked<T extends AcquireOptions> = Omit<T, "within"> & { within?: string };

/** An acquisition for Go, with the locks that the page holds for it already. */
export type Acquisition = Checked<AcquireOptions> & { leaseId: string; lent?: Promise<Loan | undefined> | Loan | undefined };

/** Returns a copy of the options that can be sent to a worker, without signal and functions. */
export function checked<T extends AcquireOptions>(options = {} as T): Checked<T> {
  if (typeof options !== "object" || options === null) throw invalid("options", "must be an object");
  const { signal, onReadonly, within, path, paths, backoff, ...fields } = options;
  checkSignal(signal);
  if (onReadonly !== undefined && typeof onReadonly !== "function") throw invalid("onReadonly", "must be a function");
  if (within !== undefined && !(within instanceof Lease)) throw invalid("within", "must be a lease");
  if (path !== undefined && !isPath(path)) throw invalid("path", "must be an array of strings, without lone surrogates");
  if (paths !== undefined && !(Array.isArray(paths) && paths.every(isPath))) throw invalid("paths", "must be an array of paths");
  primitive("", { ...fields, backoff: typeof backoff === "object" ? 0 : backoff });
  primitive("backoff.", backoff);
  return { ...fields, backoff, paths: paths?.map((one) => one.slice()), path: path?.slice(), within: within?.leaseId, signal, onReadonly } as Checked<T>;
}

/** Accepts a frame's AbortSignal, too. */
function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal as AbortSignal | null)?.throwIfAborted) throw invalid("signal", "must be an AbortSignal");
}

// Go has no lone surrogates: two that differ would become one name.
const isPath = (value: unknown): boolean => Array.isArray(value) && value.every((part) => typeof part === "string" && !/\p{Surrogate}/u.test(part));

/** Refuses unknown options and values that cannot be sent to a worker. Go checks the rest, null included. */
function primitive(prefix: string, fields: object | undefined): void {
  for (const [option, value] of Object.entries({ ...fields })) {
    const type = typeof value;
    if (["function", "symbol", "bigint"].includes(type) || (type === "object" && value !== null)) throw invalid(prefix + option, `must not be a ${type}`);
  }
}

/** Returns the user's token at the server. */
export type Token = () => Promise<unknown>;

/** The places of the package's files. Without a URL, a file is beside this module. */
export interface Places { baseURL?: URL | undefined; wasmURL?: URL | undefined; workerURL?: URL | undefined }

/** Options of openHoldfast with their defaults. */
export interface Opening extends Places { host: string; strategy: string; root: string; ownerName: string; server: string; token: Token | undefined; signal: AbortSignal | undefined }

/** On a server, URLs have no base: they are not checked. */
export function checkOpen(options: OpenOptions = {}, inBrowser = true): Opening {
  if (typeof options !== "object" || options === null) throw invalid("options", "must be an object");
  const { host = "worker", strategy = "auto", root = "project", ownerName = "", server, signal } = options;
  if (!["worker", "page"].includes(host)) throw invalid("host", 'must be "worker" or "page"');
  if (!["auto", "web-lock", "file-lock"].includes(strategy)) throw invalid("strategy", 'must be "auto", "web-lock" or "file-lock"');
  if (typeof root !== "string" || /(^|\/)(\.{0,2}(\/|$)|documents\/=)|[\\\0]/.test(root)) {
    throw invalid("root", 'must be a folder like "team/project"');
  }
  checkSignal(signal);
  if (typeof ownerName !== "string") throw invalid("ownerName", "must be a string");
  if (server && ownerName.length > 64) throw invalid("ownerName", "must not be longer than 64 with a server");
  const at = server !== undefined && inBrowser && address("server.url", server?.url);
  if (at && !/^https?:$/.test(at.protocol)) throw invalid("server.url", "must begin with https: or http:");
  if (server?.token !== undefined && typeof server.token !== "function") throw invalid("server.token", "must be a function");
  const place = (option: "baseURL" | "wasmURL" | "workerURL", end?: string): URL | undefined =>
    (options[option] === undefined || !inBrowser ? undefined : address(option, options[option], end));
  return {
    host, strategy, root, ownerName, signal, server: at ? (at.origin + at.pathname).slice(0, -1) : "",
    token: server?.token && (async () => server.token!()),
    baseURL: place("baseURL"), wasmURL: place("wasmURL", ""), workerURL: place("workerURL", ""),
  };
}

/** The URL of a folder, or of a file where `end` is empty. Accepts a frame's URL, too. */
function address(option: string, value: unknown, end = "/"): URL {
  try {
    const href = typeof value === "string" ? value : (value as URL).href;
    if (!href) throw value;
    const url = new URL(new Request(href).url);
    if (!url.pathname.endsWith(end)) url.pathname += end;
    return url;
  } catch {
    throw invalid(option, "must be a URL");
  }
}

export const noPage = (): ProjectLockError => problem("unsupported", "this is a server; open Holdfast in a browser");

/** Whether this runs in a page or in a worker of one. */
export const inBrowser = "document" in globalThis || "WorkerGlobalScope" in globalThis;
