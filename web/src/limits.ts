// Limits of AutoSave in the page; times are in milliseconds. This module has no imports: so esbuild puts the numbers where they are used.

/** The default of the option journalMs. */
export const journalMs = 200;

/** How long typing must pause before text that may not be saved becomes a draft. */
export const asideMs = 500;

/** The time until the next try to begin. */
export const againMs = 5000;

/** How long an editor may take to load a content, or to return a snapshot before the next one is taken. */
export const limitMs = 5000;

/** How long a snapshot may take to be in the file of its draft before localStorage gets it. */
export const lateMs = 4000;

/** Maximum share of the main thread's time for journalling. */
export const share = 0.05;

/** How long AutoSave waits for the preview once the runtime runs. The preview takes longer only if a download or the storage is stuck. */
export const previewMs = 1000;
