// Measures the cost of the journal for a page: while the user types, and when the page ends.
import { marking, text } from "./autosave.js";

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** A key every so many milliseconds: a fast typist. */
const keyMs = 50;

let editor;

export const journal = {
  /** Begins to edit a document of that many bytes, which is saved; nothing else is saved by itself. */
  async begin(host, size, journalMs) {
    const { openHoldfast } = await import("/holdfast.js");
    const hf = await openHoldfast({ host, root: `bench-journal-${host}-${size}-${journalMs}` });
    editor = { text: text(size), hf };
    editor.autosave = await hf.initAutoSave(() => editor.text, { journalMs, debounceMs: 600_000, idleMs: 600_000 });
    await pause(50); // the content of an earlier round arrives in a task of its own
    editor.text = text(size);
    editor.autosave.markDirty();
    await editor.autosave.flushNow();
  },

  /** Types for that long, somewhere in the middle of the text. */
  async type(ms) {
    for (const end = performance.now() + ms; performance.now() < end; await pause(keyMs)) {
      const middle = editor.text.length >> 1;
      editor.text = `${editor.text.slice(0, middle)}x${editor.text.slice(middle + 1)}`;
      editor.autosave.markDirty();
    }
  },

  /** Microseconds of a call of markDirty, each in a task of its own, while the journal runs. */
  mark: (n) => marking(editor.autosave, n, true),

  async end() {
    await editor.autosave.flushNow();
    await editor.hf.close();
  },

  /** Puts that many bytes into the editor, and writes down how long the listeners of the page's end take when it ends. */
  put(size) {
    editor.text = text(size);
    editor.autosave.markDirty();
    const took = {};
    for (const [target, type] of [[window, "pagehide"], [document, "visibilitychange"]]) {
      let begun = 0;
      // Listeners of the window are called first, on the way down to the target, and last, on the way back.
      window.addEventListener(type, () => { begun = performance.now(); }, { capture: true });
      target.addEventListener(type, () => {
        took[type] = performance.now() - begun;
        sessionStorage.setItem("took", JSON.stringify(took));
      });
    }
  },

  /** How long the listeners took when the page before this one ended. */
  took: () => JSON.parse(sessionStorage.getItem("took") ?? "{}"),
};
