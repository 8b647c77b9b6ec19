// Types numbered lines into a document that saves itself, and tells the checker which of them are said to be saved.
import { openHoldfast } from "/holdfast.js";
import { generator, run, sleep, start } from "/soak/common.js";
import { sha256, writeLate } from "/soak/late.js";

/** Expected errors of editing under faults; the editor tries again. */
const expected = /^(handover-|aborted|acquire-|unsupported|lease-|read-only|read-failed|write-failed|quota-exceeded|storage-evicted|stale-token|disposed)/;

const decoder = new TextDecoder();

export const edit = (options) =>
  run(options, async ({ id, document, open, timing, seed, fault }, tell) => {
    const random = generator(seed);
    const hf = await start(openHoldfast, { ...open, ownerName: id }, tell);
    let text = "";
    let typed = 0;
    let saves = 0;
    let pending = []; // typed, not known to be saved
    let snapshots = [];
    let own; // token under which it was the editor
    let saver;
    let telling = Promise.resolve();
    const later = (what) => (telling = telling.then(what));
    const snapshot = () => {
      snapshots = [...snapshots.slice(-20), text];
      return text;
    };
    const begin = async () => {
      for (;;) {
        try {
          return await hf.initAutoSave(snapshot, { debounceMs: 100, idleMs: 400, maxGenerations: 8, lock: { ...timing, backoff: { initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0 } } });
        } catch (error) {
          if (!expected.test(error.code)) throw error;
          if ((await tell("note", { code: error.code })).stop) return undefined;
          await sleep(300);
        }
      }
    };
    saver = await begin();
    if (!saver) return hf.close();
    saver.addEventListener("autosave:editable", ({ detail }) => {
      const token = (own = saver.lease?.token);
      if (detail.content) {
        text = decoder.decode(detail.content);
        pending = pending.filter((line) => text.includes(line));
        const content = text;
        if (token) later(() => tell("loaded", { document, token, content }));
      }
    });
    saver.addEventListener("autosave:saved", ({ detail }) => {
      const saved = snapshots.findLast((known) => known.length === detail.bytes);
      if (saved === undefined) return; // what another page had left behind
      later(async () => {
        if ((await sha256(saved)) !== detail.sha256) return;
        const lines = pending.filter((line) => saved.includes(`${line}\n`));
        pending = pending.filter((line) => !lines.includes(line));
        if (fault && saves++ % 3 === 0) lines.push(`${id}:never typed ${typed}`); // the first one for sure
        await tell("saved", { document, token: detail.token, lines });
      });
    });
    // The token is the one that was asked about: meanwhile it may be the editor again, under another one that counts.
    const intrude = async (token) => {
      const line = `${id}:under token ${token}`;
      await tell("late", { document, lines: [line] });
      await tell("wrote late", { document, code: await writeLate(open, token, `${text}${line}\n`) });
      if (own === token) own = undefined;
      try {
        await tell("read", { document, content: decoder.decode(await saver.read("current")) });
      } catch (error) {
        if (!expected.test(error.code)) throw error;
      }
    };
    for (;;) {
      const token = own;
      const { go: superseded, stop } = await tell("poll", { state: saver.readOnly ? "reading" : "editing", document, token });
      if (stop) break;
      if (token && (superseded || (fault && random() < 0.3))) await intrude(token);
      if (!saver.readOnly) {
        const line = `${id}:${typed++}`;
        pending.push(line);
        text += `${line}\n`;
        saver.markDirty();
      } else if (random() < 0.15) {
        try {
          await saver.requestEdit({ force: random() < 0.3, graceMs: 1000, signal: AbortSignal.timeout(10_000) });
        } catch (error) {
          if (!expected.test(error.code ?? "") && error.name !== "TimeoutError") throw error;
          await tell("note", { code: error.code ?? error.name });
        }
      }
      await sleep(100 + random() * 300);
    }
    await saver.dispose().catch((error) => {
      if (!expected.test(error.code)) throw error;
    });
    await telling;
    await hf.close();
  });
