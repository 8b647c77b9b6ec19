// The first program of a new user: a lock, and a text that saves itself. The test reads `story`.
import { openHoldfast, ProjectLockError, type AutoSave, type OpenOptions, type ProjectLockEvent } from "holdfast";

declare global {
  var story: Promise<string[]>;
}

const text = document.querySelector<HTMLTextAreaElement>("#text")!;

async function lock(options: OpenOptions): Promise<string[]> {
  const holdfast = await openHoldfast(options);
  const types: ProjectLockEvent["type"][] = [];
  holdfast.subscribe((event) => types.push(event.type));

  const lease = await holdfast.acquireProjectLock({ timeoutMs: 10_000 });
  const other = await openHoldfast(options);
  const denied = await other.acquireProjectLock({ ifAvailable: true }).catch((error: unknown) => error);
  if (!(denied instanceof ProjectLockError)) throw new Error("two hold the lock");
  await lease.release();
  const free = await other.withProjectLock(({ token }) => token > lease.token);
  await Promise.all([other.close(), holdfast.close()]);
  return [denied.code, `later token greater: ${free}`, ...types];
}

async function save(options: OpenOptions): Promise<string> {
  const holdfast = await openHoldfast(options);
  const autosave: AutoSave = await holdfast.initAutoSave(() => text.value);
  text.value = "typed in a Vite build";
  autosave.markDirty();
  const generation = await autosave.flushNow();
  const content = new TextDecoder().decode(await autosave.read("current"));
  await holdfast.close();
  return `${generation.bytes}: ${content}`;
}

globalThis.story = (async () => {
  const lines: string[] = [];
  for (const host of ["worker", "page"] as const) {
    lines.push(...await lock({ host, root: `lock-${host}`, ownerName: "Ann" }), await save({ host, root: `save-${host}` }));
  }
  return lines;
})();
