// The answers of a page to Go's questions: the content to save, and the text of a draft.

import { failedAnswer } from "./failed-answer";
import type { Journal } from "./journal";
import type { Loading } from "./loading";
import type { Marks } from "./marks";
import type { PageSnapshots } from "./page-snapshots";
import { encodedApart } from "./snapshot";
import type { Told, Wire } from "./wire";

export class PageAnswers {
  readonly #id: number;
  readonly #call: Wire["call"];
  readonly #snapshots: PageSnapshots;
  readonly #journal: Journal;
  readonly #loading: Loading;
  readonly #marks: Marks;

  constructor(id: number, call: Wire["call"], snapshots: PageSnapshots, journal: Journal, loading: Loading, marks: Marks) {
    this.#id = id;
    this.#call = call;
    this.#snapshots = snapshots;
    this.#journal = journal;
    this.#loading = loading;
    this.#marks = marks;
  }

  /** Gives Go the answer to its question. */
  async give({ ask }: Told, answer: Promise<object | void>): Promise<void> {
    const found = await answer.catch(failedAnswer);
    await this.#call("answer", { ...found, ask, saver: this.#id }).catch(() => undefined);
  }

  /** The content that Go saves now, in bytes that nobody else uses. */
  async snapshot(): Promise<{ bytes: Uint8Array; draft: string; number: number }> {
    if (!this.#snapshots.pinned) await this.#loading.done;
    const snapshot = this.#snapshots.serve(), { draft, number } = snapshot;
    const text = await snapshot.ready;
    if (this.#snapshots.marks > snapshot.marks) this.#marks.again();
    return { bytes: await encodedApart(text), draft, number };
  }

  /** Stores unsaved text as a draft that other pages find. */
  async seal(cause: string): Promise<object> {
    if (!this.#snapshots.unsaved) return {};
    const draft = await this.#journal.draft(this.#snapshots.stand(), cause);
    return draft ? { draft } : {};
  }
}
