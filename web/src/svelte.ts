// holdfast/svelte: an action for fields, and stores. Neither needs the package svelte.

import { type EditorOptions, following, TextEditor, type TextView } from "./text-editor";

type Run<T> = (value: T) => void;

/** A text that saves itself while it has a subscriber: `text` is for bind:value. */
export function editorStore(options: EditorOptions = {}) {
  const editor = new TextEditor();
  let users = 0;
  let end = (): void => undefined;
  const store = <T>(pick: (view: TextView) => T) => ({
    subscribe(run: Run<T>): () => void {
      if (users++ === 0) ({ end } = following(editor, options));
      let last = pick(editor.view);
      run(last);
      const forget = editor.subscribe(() => {
        const now = pick(editor.view);
        if (now === last) return;
        last = now;
        run(now);
      });
      let subscribed = true;
      return () => {
        forget();
        if (subscribed && --users === 0) end();
        subscribed = false;
      };
    },
  });
  const text = {
    ...store((view) => view.text),
    set: editor.setText,
    update: (change: (text: string) => string) => editor.setText(change(editor.view.text)),
  };
  return { text, readOnly: store((view) => view.readOnly), view: store((view) => view) };
}

type Field = HTMLTextAreaElement | HTMLInputElement;

/**
 * An action: the field saves itself, and is read-only while this page may not write. When its options name another
 * document, the field shows that one, and the text of the former one is saved.
 */
export function autosave(field: Field, options: EditorOptions = {}): { update(options?: EditorOptions): void; destroy(): void } {
  const editor = new TextEditor();
  const typed = (): void => editor.setText(field.value);
  field.addEventListener("input", typed);
  field.autocomplete ||= "off"; // otherwise the browser fills in an old text when the user comes back, as if the user had typed it
  const { update, end } = following(editor, options);
  if (field.value !== field.defaultValue) typed(); // into the HTML of a server, before this script ran
  const show = (): void => {
    const { text, readOnly } = editor.view;
    if (field.value !== text) field.value = text;
    field.readOnly = readOnly;
  };
  show();
  const forget = editor.subscribe(show);
  return {
    update: (next = {}) => update(next),
    destroy() {
      field.removeEventListener("input", typed);
      end();
      forget();
    },
  };
}
