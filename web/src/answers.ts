// The answers of a page to Go's questions: the content to save, and the text of a draft.

import { failed } from "./failed";
import type { Journal } from "./journal";
import type { Loading } from "./loading";
import type { Marks } from "./marks";
import type { Shots } from "./shots";
import { encodedApart } from "./snapshot";
import type { Told, Wire } from "./wire";

export class Answers {
  readonly #id: number;
  readonly #call: Wire["call"];
  readonly #shots: Shots;
  readonly #journal: Journal;
  readonly #loading: Loading;
  readonly #marks: Marks;

  constructor(id: number, call: Wire["call"], shots: Shots, journal: Journal, loading: Loading, marks: Marks) {
    this.#id = id;
    this.#call = call;
    this.#shots = shots;
    this.#journal = journal;
    this.#loading = loading;
    this.#marks = marks;
  }

  /** Gives Go the answer to its question. */
  async give({ ask }: Told, answer: Promise<object | void>): Promise<void> {
    const found = await answer.catch(failed);
    await this.#call("answer", { ...found, ask, saver: this.#id }).catch(() => undefined);
  }

  /** The content that Go saves now, in bytes that nobody else uses. */
  async snapshot(): Promise<{ bytes: Uint8Array; draft: string; number: number }> {
    if (!this.#shots.pinned) await this.#loading.done;
    const shot = this.#shots.serve(), { draft, number } = shot;
    const text = await shot.ready;
    if (this.#shots.marks > shot.marks) this.#marks.again();
    return { bytes: await encodedApart(text), draft, number };
  }

  /** Stores unsaved text as a draft that other pages find. */
  async seal(cause: string): Promise<object> {
    if (!this.#shots.unsaved) return {};
    const draft = await this.#journal.draft(this.#shots.stand(), cause);
    return draft ? { draft } : {};
  }
}
