// The answers of a page to Go's questions: the content to save, and the text of a draft.

import { failedAnswer } from "./failed-answer";
import type { Journal } from "./journal";
import type { Loading } from "./loading";
import type { Marks } from "./marks";
import type { PageSnapshots } from "./page-snapshots";
import { encodedApart } from "./snapshot";
import type { SaverEvent, Wire } from "./wire";

export interface PageAnswers {
  /** Gives Go the answer to its question. */
  give(asking: SaverEvent, answer: Promise<object | void>): Promise<void>;
  /** The content that Go saves now, in bytes that nobody else uses. */
  snapshot(): Promise<{ bytes: Uint8Array; draft: string; number: number }>;
  /** Stores unsaved text, if there is any, as a draft that other pages find. */
  seal(cause: string): Promise<object>;
}

export const pageAnswers = (saver: number, call: Wire["call"], snapshots: PageSnapshots, journal: Journal, loading: Loading, marks: Marks): PageAnswers => ({
  async give({ ask }, answer) {
    const found = await answer.catch(failedAnswer);
    await call("answer", { ...found, ask, saver }).catch(() => undefined);
  },

  async snapshot() {
    if (!snapshots.pinned) await loading.done;
    const snapshot = snapshots.serve(), { draft, number } = snapshot;
    const text = await snapshot.ready;
    if (snapshots.marks > snapshot.marks) marks.again();
    return { bytes: await encodedApart(text), draft, number };
  },

  async seal(cause) {
    return { draft: snapshots.unsaved && await journal.draft(snapshots.fix(), cause) };
  },
});
