// Opens documents one after the other in one page, each with an AutoSave of its own.

import { text } from "./autosave.js";

const holdfasts = [];

/** The one Holdfast of the page, or the next one. */
async function holdfastOf(host, apart) {
  const { createHoldfast } = await import("/holdfast.js");
  if (apart || holdfasts.length === 0) holdfasts.push(createHoldfast({ host, root: `bench-documents-${host}` }));
  return holdfasts.at(-1);
}

export const documents = {
  /** Opens the next document, saves 10,000 bytes in it, and returns the milliseconds until the user may type and until the text is saved. */
  async open(host, name, apart) {
    const content = text(10_000);
    const begun = performance.now();
    const autosave = (await holdfastOf(host, apart)).createAutoSave(() => content, { path: [name] });
    const editable = await new Promise((done) => {
      autosave.addEventListener("autosave:editable", () => done(performance.now() - begun), { once: true });
    });
    autosave.markDirty();
    await autosave.flushNow();
    return { editable, saved: performance.now() - begun };
  },

  close: () => Promise.all(holdfasts.map((holdfast) => holdfast.close())),
};
