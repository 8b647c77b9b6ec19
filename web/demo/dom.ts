// The few things every view needs from the DOM. No view writes markup as text: all content
// goes in as text nodes, so a tab's name can never become an element of another tab.

/** The element of index.html with this id. A missing one is a mistake in the page, so it throws. */
export function byId<T extends Element = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no element #${id}`);
  return element as unknown as T;
}

/** A new element with a class and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, className = "", ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** One of the symbols that index.html defines as "i-…". */
export function icon(name: string): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(space, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/**
 * Sets text only if it differs: views run many times per second, and an unchanged text must cost no layout and must not
 * collapse a user's selection.
 */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute only if it differs, for the same reason. */
export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
