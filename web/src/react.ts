"use client";

// holdfast/react: hooks that own what they open. They open nothing while rendering, so a render that never shows leaves
// nothing behind.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { Holdfast, OpenOptions } from "../holdfast";
import { Binding, type BindingOptions, owning, unbound, waits } from "./binding";
import { createHoldfast } from "./holdfast.js";
import { type EditorOptions, keyOf, noText, TextEditor } from "./text-editor";
import { content, taken, type Taken, type Taking } from "./snapshot";

/** On a server, layout effects only warn. */
const useLayout = "document" in globalThis ? useLayoutEffect : useEffect;

/** A Holdfast for as long as the component lives; undefined in the first render and on a server. */
export function useHoldfast(options?: OpenOptions): Holdfast | undefined {
  const [holdfast, setHoldfast] = useState<Holdfast>();
  const latest = useLatest(options);
  const key = keyOf(options);
  const shown = useRef<Holdfast>(undefined);
  useEffect(() => {
    const opened = createHoldfast(opening(latest));
    setHoldfast(opened);
    return () => { if (shown.current !== opened) close(opened); };
  }, [key]);
  // The former one is closed when the next one is in use: text that is marked until then belongs to the former one.
  useEffect(() => {
    shown.current = holdfast;
    return () => { if (holdfast) close(holdfast); };
  }, [holdfast]);
  return holdfast;
}

/** Text that cannot be saved is a draft. */
const close = (holdfast: Holdfast): void => void holdfast.close().catch(() => undefined);

/** The page's side of one document: `snapshot` and `options` of the last commit for this document. */
interface Page { snapshot: Taking; options: BindingOptions; kept?: Taken | undefined }

/**
 * Saves the result of `snapshot` while the component is mounted. The hook calls the function of the last commit, and calls it once more before the
 * component's elements are removed or its options change.
 */
export function useAutoSave(holdfast: Holdfast | undefined, snapshot: Taking, options: BindingOptions = {}) {
  const key = keyOf(options);
  const bound = useRef<Binding>(undefined);
  const marked = useRef<string>(undefined); // the document with a mark since the last commit, or since there is no Holdfast
  const document = useLatest(key);
  // One for each document: the text of one document never becomes that of the next.
  const page = useMemo((): Page => ({ snapshot, options }), [holdfast, key]);
  const [listeners] = useState(() => new Set<() => void>());

  useLayout(() => { Object.assign(page, { snapshot, options }); });

  // React removes the elements before it cleans up effects, so the text is read before that.
  useLayout(() => {
    page.kept = undefined;
    return () => { page.kept = taken(() => copied(page.snapshot())); };
  }, [page]);

  useEffect(() => {
    if (!holdfast) return;
    const binding = bound.current = new Binding(holdfast, () => (page.kept ? page.kept.text : page.snapshot()), saving(() => page.options),
      () => listeners.forEach((listener) => listener()));
    if (marked.current === key) binding.markDirty(); // before there was a Holdfast
    listeners.forEach((listener) => listener());
    return () => {
      binding.end();
      bound.current = undefined;
      listeners.forEach((listener) => listener());
    };
  }, [holdfast, page]);

  // AutoSave may have read a text that was marked before this commit with the function of an earlier commit.
  useLayout(() => {
    if (marked.current !== undefined) bound.current?.markDirty();
    if (bound.current || marked.current !== key) marked.current = undefined;
  });

  const subscribe = useCallback((listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listeners]);
  const view = useSyncExternalStore(subscribe, () => bound.current?.view ?? unbound, () => unbound);
  const markDirty = useCallback(() => {
    marked.current = document.current;
    bound.current?.markDirty();
  }, []);
  return { ...view, markDirty };
}

/** A text that saves itself, for a controlled field: `text`, `setText`, `readOnly`. Without the option `holdfast` it opens a Holdfast. */
export function useEditor(given: EditorOptions = {}) {
  const { holdfast, open, ...options } = given;
  const [editor] = useState(() => new TextEditor());
  const latest = useLatest<BindingOptions>(options), openings = useLatest(open);
  const own = !("holdfast" in given), waiting = waits(given);
  const key = keyOf([options, own && open]);
  const document = keyOf([options.path, own && open]);
  useEffect(() => { if (!waiting && editor.shows(document, holdfast)) editor.clear(); }, [editor, holdfast, document, waiting]);
  useEffect(() => {
    return owning(own ? { open: opening(openings) } : { holdfast }, (used) => editor.begin(used, saving(() => latest.current)));
  }, [editor, holdfast, own, key]);
  const view = useSyncExternalStore(editor.subscribe, () => editor.view, () => noText);
  return { ...view, setText: editor.setText };
}

/** A child may empty the object that the snapshot returns when it leaves, before the AutoSave ends. */
function copied(snapshot: ReturnType<Taking>): ReturnType<Taking> {
  const copy = content(snapshot);
  if (copy instanceof Promise) copy.catch(() => undefined); // the AutoSave reports it if it needs the text
  return copy;
}

/** Options whose functions call those of the last commit. */
function saving(latest: () => BindingOptions): BindingOptions {
  const { merge, load, lock, ...rest } = latest();
  return {
    ...rest,
    ...(merge && { merge: (sides) => latest().merge?.(sides) }),
    ...(load && { load: (content) => latest().load?.(content) }),
    ...(lock && { lock: { ...lock, ...(lock.onReadonly && { onReadonly: (event) => latest().lock?.onReadonly?.(event) }) } }),
  };
}

/** The same for the options of a Holdfast. */
function opening(latest: { current: OpenOptions | undefined }): OpenOptions | undefined {
  const open = latest.current;
  if (!open?.server?.token) return open;
  return { ...open, server: { ...open.server, token: async () => await latest.current?.server?.token?.() ?? "" } };
}

/** The value of the last commit. */
function useLatest<T>(value: T): { current: T } {
  const latest = useRef(value);
  useLayout(() => { latest.current = value; });
  return latest;
}
