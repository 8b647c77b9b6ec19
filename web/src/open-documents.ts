// The documents that are open in this page, in any copy of this module. A document has one editor, so a second AutoSave
// only waits.

const key = Symbol.for("holdfast documents");
const open = ((globalThis as Record<symbol, unknown>)[key] ??= new Map()) as Map<object, string>;

/** Records that an AutoSave has opened the document of this folder. Warns if another one in this page has opened it already. */
export function add(autosave: object, folder: string): void {
  if (folder && [...open.values()].includes(folder)) {
    console.warn(`holdfast: ${JSON.stringify(folder.replace(/\/autosave$/, ""))} is open twice in this page: dispose() of one`);
  }
  open.set(autosave, folder);
}

export function forget(autosave: object): void { open.delete(autosave); }
