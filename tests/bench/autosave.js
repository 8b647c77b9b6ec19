// Measures AutoSave beside a program that writes the same bytes to OPFS directly.

const macrotask = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const editors = new Map();

async function editorOf(host) {
  if (!editors.has(host)) {
    const { openHoldfast } = await import("/holdfast.js");
    const hf = await openHoldfast({ host, root: `bench-save-${host}` });
    const editor = { text: "" };
    editor.autosave = await hf.initAutoSave(() => editor.text, { debounceMs: 600_000, idleMs: 600_000 });
    editors.set(host, editor);
  }
  return editors.get(host);
}

let bare;
let last = 0;

/** A new file with these bytes, written and flushed in a worker. */
function write(bytes) {
  bare ??= new Worker("/raw-writer.js", { type: "module" });
  return new Promise((done) => {
    bare.onmessage = done;
    bare.postMessage({ name: `${++last}`, bytes }, [bytes.buffer]);
  });
}

// One flat string, as an editor holds it: the engine would keep a concatenated text as its parts.
export const text = (size) => new TextDecoder().decode(new TextEncoder().encode(`${Math.random()} `.padEnd(size, "All work and no play makes a dull text. ")));

/** Milliseconds of an action. */
async function timed(action) {
  const begun = performance.now();
  await action();
  return performance.now() - begun;
}

/** The longest time in which the page can do nothing else during an action. To find out takes a processor. */
async function blocking(action) {
  let longest = 0;
  let over = false;
  const watch = (async () => {
    for (let before = performance.now(); !over;) {
      await macrotask();
      const now = performance.now();
      longest = Math.max(longest, now - before);
      before = now;
    }
  })();
  await macrotask();
  await action();
  over = true;
  await watch;
  return longest;
}

export async function marking(autosave, n, apart) {
  let sum = 0;
  for (let i = 0; i < n; i += apart ? 1 : n) {
    if (apart) await macrotask();
    const begun = performance.now();
    for (let j = 0; j < (apart ? 1 : n); j++) autosave.markDirty();
    sum += performance.now() - begun;
  }
  return sum * 1000 / n;
}

export const autosave = {
  /** Microseconds of a call of markDirty: in a row, and each in a task of its own, as keys are typed. */
  mark: async (host, n, apart) => marking((await editorOf(host)).autosave, n, apart),

  /** A commit of that many bytes, and another one that is watched. */
  async commit(host, size) {
    const editor = host === "raw" ? {} : await editorOf(host);
    const save = async (measure) => {
      editor.text = text(size);
      const bytes = host === "raw" && new TextEncoder().encode(editor.text);
      await pause(50); // what the one before has left to do is done
      editor.autosave?.markDirty();
      return measure(() => bytes ? write(bytes) : editor.autosave.flushNow());
    };
    return { ms: await save(timed), longest: await save(blocking) };
  },

  /** Saves a small text n times. */
  async repeat(host, n) {
    const editor = await editorOf(host);
    for (let i = 0; i < n; i++) {
      editor.text = text(10_000);
      editor.autosave.markDirty();
      await editor.autosave.flushNow();
    }
  },
};
