declare const __VERSION__: string;

/** The global name of startPage, where holdfast-page.js was imported before it is needed. */
export const pageKey = Symbol.for(`holdfast-page ${__VERSION__}`);
