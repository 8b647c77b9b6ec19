// An EventTarget that repeats the last event of a kind for a listener that is added later.

import { callListener } from "./call-listener";
import { Subscribers } from "./subscribers";

type Listener = EventListenerOrEventListenerObject;

export class Listeners extends Subscribers<void> {
  #last: { type: string; detail: () => unknown } | undefined;
  readonly #here = new Map<string, Map<Listener, () => void>>(); // with what forgets each of them
  #told = new WeakMap<Listener, object>(); // the last event that each listener has received

  override addEventListener(type: string, listener: Listener | null, options?: boolean | AddEventListenerOptions): void {
    const { once, signal } = Object(options) as AddEventListenerOptions, here = this.#here.get(type) ?? new Map<Listener, () => void>(), forget = (): void => {
      here.delete(listener!);
      signal?.removeEventListener("abort", forget); // it may live as long as the page
    };
    if (once) super.addEventListener(type, forget, options); // before the listener, which may add itself again
    super.addEventListener(type, listener, options);
    if (!listener || signal?.aborted) return;
    this.#here.set(type, here.set(listener, forget));
    signal?.addEventListener("abort", forget);
    const last = this.#last;
    if (last?.type !== type || this.#told.get(listener) === last) return;
    this.#told.set(listener, last);
    setTimeout(() => {
      // Only if it still listens, no newer event came, and this has not ended.
      if (this.#last !== last || !here.has(listener)) return;
      if (once) this.removeEventListener(type, listener, options);
      const event = new CustomEvent(type, { detail: last.detail() }), target = { value: this };
      Object.defineProperties(event, { target, currentTarget: target });
      callListener(() => (typeof listener === "function" ? listener.call(this, event) : listener.handleEvent(event)));
    });
  }

  override removeEventListener(type: string, listener: Listener | null, options?: boolean | EventListenerOptions): void {
    super.removeEventListener(type, listener, options);
    this.#here.get(type)?.get(listener!)?.();
  }

  /** From now on no event is repeated. */
  end(): void { this.#last = undefined; }

  /** Number of listeners for events of this kind, if there were any. */
  hears(type: string): number | undefined { return this.#here.get(type)?.size; }

  /** Dispatches an event. The detail of a lasting one is made again for each later listener. */
  tell(type: string, detail: unknown, later: () => unknown = () => detail): void {
    if (/:(editable|readonly)$/.test(type)) { // the last one says whether the page is an editor or read-only
      const last = this.#last = { type, detail: later };
      this.#here.get(type)?.forEach((_, listener) => this.#told.set(listener, last));
    }
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
