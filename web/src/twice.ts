// Which documents are open in this page, whoever opened them: a document has one editor, so the second AutoSave only waits.

const key = Symbol.for("holdfast documents");
const open = ((globalThis as Record<symbol, unknown>)[key] ??= new Map()) as Map<object, string>;

/** Notes that an AutoSave has a document, which its folder names. Warns where another one in this page has it already. */
export function add(autosave: object, folder: string): void {
  if (folder && [...open.values()].includes(folder)) {
    console.warn(`holdfast: the document ${JSON.stringify(folder.replace(/\/autosave$/, ""))} is open twice in this page, and one of the two AutoSaves is read-only. `
      + "Share one AutoSave, or call dispose() on the first one before you create the second.");
  }
  open.set(autosave, folder);
}

export function forget(autosave: object): void { open.delete(autosave); }
