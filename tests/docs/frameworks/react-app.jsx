// Shows the components of docs/frameworks.md, and some that are harder, under StrictMode.

import { refreshed } from "./refresh.js";
import { StrictMode, Suspense, use, useEffect, useLayoutEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { createHoldfast } from "holdfast";
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

/** The snapshot is an object that a child empties when it leaves. */
function Emptied() {
  const model = useRef({ text: "" });
  const [, show] = useState("");
  const holdfast = useHoldfast();
  const { readOnly, markDirty } = useAutoSave(holdfast, () => model.current, {
    path: ["emptied"],
    load: (content) => {
      model.current = JSON.parse(new TextDecoder().decode(content));
      show(model.current.text);
    },
  });
  const type = (event) => {
    show(model.current.text = event.target.value);
    markDirty();
  };
  return <main><Engine model={model} /><textarea value={model.current.text} readOnly={readOnly} onChange={type} aria-label="Emptied" /></main>;
}

function Engine({ model }) {
  useLayoutEffect(() => () => { model.current.text = ""; }, [model]);
  return null;
}

/** An element that shows one document after the other. */
function Turned() {
  const [page, setPage] = useState("one");
  const field = useRef(null);
  const holdfast = useHoldfast();
  const { autosave, readOnly, markDirty } = useAutoSave(holdfast, () => field.current.value, {
    path: ["turned", page],
    load: (content) => { field.current.value = new TextDecoder().decode(content); },
  });
  Object.assign(globalThis, { turn: setPage, autosave });
  return <textarea ref={field} readOnly={readOnly} onInput={markDirty} aria-label={page} />;
}

/** Another component with the same document as Notes, as of another route. */
function Other() {
  const { text, setText, readOnly } = useEditor({ path: ["notes"] });
  return <main><textarea value={text} readOnly={readOnly} onChange={(event) => setText(event.target.value)} aria-label="Other" /></main>;
}

/** One component shows one document after the other, and its snapshot is that of the document. */
function Pages() {
  const [page, setPage] = useState("one");
  const [texts, setTexts] = useState({});
  const holdfast = useHoldfast();
  const { readOnly, markDirty } = useAutoSave(holdfast, () => texts[page] ?? "", {
    path: ["pages", page],
    load: (content) => setTexts((before) => ({ ...before, [page]: new TextDecoder().decode(content) })),
  });
  globalThis.turn = setPage;
  const type = (event) => {
    setTexts({ ...texts, [page]: event.target.value });
    markDirty();
  };
  return <textarea value={texts[page] ?? ""} readOnly={readOnly} onChange={type} aria-label={page} />;
}

/** The same with a text that saves itself. */
function Turning() {
  const [page, setPage] = useState("one");
  const { text, setText, readOnly } = useEditor({ path: ["turning", page] });
  globalThis.turn = setPage;
  return <textarea value={text} readOnly={readOnly} onChange={(event) => setText(event.target.value)} aria-label={page} />;
}

/** A component whose file is saved while it is shown. */
const Refreshed = refreshed(["first", "second"].map((version) => () => {
  const { text, setText, readOnly } = useEditor({ path: ["refreshed"] });
  return <textarea data-version={version} value={text} readOnly={readOnly} onChange={(event) => setText(event.target.value)} aria-label="Refreshed" />;
}));

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

/** Its Holdfast gets other options, and the user types before the next render. */
function Renamed() {
  const [ownerName, setOwnerName] = useState("Ann");
  const field = useRef(null);
  const holdfast = useHoldfast({ ownerName });
  useEffect(() => {
    if (ownerName === "Ann") return;
    field.current.value += "!";
    markDirty();
  }, [ownerName]);
  const { autosave, readOnly, markDirty } = useAutoSave(holdfast, () => field.current.value, {
    path: ["renamed"],
    load: (content) => { field.current.value = new TextDecoder().decode(content); },
  });
  Object.assign(globalThis, { rename: setOwnerName, autosave, holdfast });
  return <textarea ref={field} readOnly={readOnly} onInput={markDirty} aria-label={ownerName} />;
}

/** The Holdfast comes later than the component. */
function Waiting() {
  const [holdfast, setHoldfast] = useState();
  const field = useRef(null);
  const { autosave, readOnly, markDirty } = useAutoSave(holdfast, () => field.current.value, {
    path: ["waiting"],
    load: (content) => { field.current.value = new TextDecoder().decode(content); },
  });
  Object.assign(globalThis, { give: () => setHoldfast(createHoldfast()), autosave, holdfast });
  return <textarea ref={field} readOnly={readOnly} onInput={markDirty} aria-label="Waiting" />;
}

/** The same with a text that saves itself. */
function Later() {
  const [holdfast, setHoldfast] = useState();
  const { text, setText, readOnly, autosave } = useEditor({ path: ["later"], holdfast });
  Object.assign(globalThis, { give: () => setHoldfast(createHoldfast({ root: "later" })), autosave, holdfast });
  return <textarea value={text} readOnly={readOnly} onChange={(event) => setText(event.target.value)} aria-label="Later" />;
}

/** Its functions know who is signed in. */
function Signed() {
  const [user, sign] = useState("");
  const own = { server: { url: location.origin, token: () => token("useHoldfast") } };
  const lock = { onReadonly: () => globalThis.told.push(user) };
  const token = (hook) => {
    globalThis.tokens[hook] = user;
    if (!user) throw new Error("nobody is signed in");
    return user;
  };
  useAutoSave(useHoldfast(own), () => "", { path: ["owned"] });
  useEditor({ path: ["own"], open: { server: { url: location.origin, token: () => token("useEditor") } } });
  const [holdfast] = useState(() => {
    const opened = createHoldfast({ root: "signed" });
    return { createAutoSave: (snapshot, options) => { globalThis.given.push(options); return opened.createAutoSave(snapshot, options); } };
  });
  useEditor({ path: ["text"], holdfast, merge: () => user, lock });
  useAutoSave(holdfast, () => "", { path: ["other"], merge: () => user, lock });
  Object.assign(globalThis, { sign, user });
  return null;
}
Object.assign(globalThis, { given: [], told: [], tokens: {} });

const parts = { Signed, Later, Waiting, Renamed, Notes, Board, Uncontrolled, Emptied, Other, Suspending, Pages, Turning, Turned, Refreshed };
let root;
globalThis.show = (name) => {
  const Part = parts[name];
  root ??= createRoot(document.querySelector("#app"));
  root.render(<StrictMode>{Part && <Part />}</StrictMode>);
};
