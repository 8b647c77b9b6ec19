// An EventTarget that also calls functions at each change.

import { callListener } from "./call-listener";

export class Subscribers<T> extends EventTarget {
  readonly #all = new Set<(news: T) => void>();

  /** Calls the listener with all news, until the returned function is called. */
  subscribe(listener: (news: T) => void): () => void {
    const own = (news: T): void => listener(news); // the same function may subscribe twice
    this.#all.add(own);
    return () => void this.#all.delete(own);
  }

  /** Calls the present listeners. One that subscribes again meanwhile gets the next news. */
  changed(news: T): void {
    for (const own of [...this.#all]) callListener(() => this.#all.has(own) && own(news));
  }
}
