// Shows the difference of two texts as marked text.

import { diff } from "./diff.js";
import { make, setText } from "./dom.js";

const marks = { same: "span", gone: "del", new: "ins" } as const;
const shown = new WeakMap<HTMLElement, string>();

/** Draws the difference, unless the element already shows it. */
export function drawDiff(element: HTMLElement, before: string, after: string): void {
  const shape = `${before.length} ${before} ${after}`;
  if (shown.get(element) === shape) return;
  shown.set(element, shape);
  const pieces = before === after ? [] : diff(before, after);
  element.replaceChildren(...(pieces.length > 0 ? pieces.map(({ kind, text }) => make(marks[kind], "", text)) : [make("span", "empty", "No difference.")]));
}

/** Draws a text without a difference. */
export function drawText(element: HTMLElement, text: string): void {
  shown.delete(element);
  setText(element, text);
}
