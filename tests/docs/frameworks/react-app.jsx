// Shows the components of docs/frameworks.md, and some that are harder, under StrictMode.

import { StrictMode, Suspense, use, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAutoSave, useEditor, useHoldfast } from "holdfast/react";
import { Board } from "./Board.jsx";
import { Notes } from "./Notes.jsx";

/** The snapshot reads an element. */
function Uncontrolled() {
  const field = useRef(null);
  const holdfast = useHoldfast();
  const { readOnly, markDirty } = useAutoSave(holdfast, () => field.current.value, {
    path: ["field"],
    load: (content) => { field.current.value = new TextDecoder().decode(content); },
  });
  return <textarea ref={field} readOnly={readOnly} onInput={markDirty} aria-label="Field" />;
}

/** Another component with the same document as Notes, as of another route. */
function Other() {
  const { text, setText, readOnly } = useEditor({ path: ["notes"] });
  return <main><textarea value={text} readOnly={readOnly} onChange={(event) => setText(event.target.value)} aria-label="Other" /></main>;
}

const Waits = ({ promise }) => use(promise);
const done = Promise.resolve("");

/** A neighbour that suspends hides the notes. */
function Suspending() {
  const [promise, setPromise] = useState(done);
  globalThis.suspend = () => {
    const { promise: next, resolve } = Promise.withResolvers();
    setPromise(next);
    globalThis.resume = () => resolve("");
  };
  return <Suspense fallback={<p id="fallback">One moment.</p>}><Uncontrolled /><Waits promise={promise} /></Suspense>;
}

const parts = { Notes, Board, Uncontrolled, Other, Suspending };
let root;
globalThis.show = (name) => {
  const Part = parts[name];
  root ??= createRoot(document.querySelector("#app"));
  root.render(<StrictMode>{Part && <Part />}</StrictMode>);
};
