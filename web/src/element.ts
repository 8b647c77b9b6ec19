// holdfast/element: <holdfast-status> shows the editor and the state of saving. The user can ask to edit, and decide
// about drafts.

import type { AutoSave, Draft } from "../holdfast";
import { style } from "./element-style";
import { type TextName, texts } from "./element-texts";

const tag = "holdfast-status";

/** Servers have no elements: the class can be imported there and does nothing. */
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

/** After these answers only force helps. */
const silent = ["handover-timeout"];

/** Calls of an AutoSave that has ended, or whose Holdfast was closed, reject with these. */
const ends = ["disposed", "aborted"];

/** Number of characters of a draft that are shown. */
const previewLength = 120;

const make = <K extends keyof HTMLElementTagNameMap>(name: K, part: string, ...children: (Node | string)[]): HTMLElementTagNameMap[K] => {
  const element = document.createElement(name);
  element.setAttribute("part", part);
  element.append(...children);
  return element;
};

const update = (element: Element, text: string): void => {
  if (element.textContent !== text) element.textContent = text; // a live region speaks at every change
};

/** The time of day in the language of a page; in that of the browser if the page names none, or one that does not exist, such as en_US. */
function timeOf(at: number, language: string | null | undefined): string {
  const date = new Date(at);
  try {
    return date.toLocaleTimeString(language || undefined);
  } catch {
    return date.toLocaleTimeString();
  }
}

/** A draft in the list, and a preview of its text; undefined for a draft that is no text. */
interface Shown { draft: Draft; preview: string | undefined }

export class HoldfastStatus extends Base {
  static readonly observedAttributes = Object.keys(texts).map((name) => `text-${name}`);

  #autosave: AutoSave | undefined;
  #stop: AbortController | undefined; // set while it is connected and has an AutoSave
  #asking = false;
  #force = false; // the page that edits does not answer
  #ended = false; // the AutoSave
  #message = "";
  #drafts: readonly Shown[] = [];
  #rows = new Map<string, ReturnType<HoldfastStatus["row"]>>(); // of the drafts in the list
  #made = 0; // counts the rows
  #listing = 0; // the last attempt to list the drafts
  #counted = 0; // the number of drafts in the state at that attempt
  #ui: ReturnType<HoldfastStatus["build"]> | undefined;

  /** The AutoSave that is shown. */
  get autosave(): AutoSave | undefined { return this.#autosave; }
  set autosave(autosave: AutoSave | undefined) {
    if (autosave === this.#autosave) return; // a component sets it each time that it renders
    this.#disconnect();
    this.#autosave = autosave;
    this.#drafts = [];
    this.#drawDrafts();
    this.#asking = this.#force = this.#ended = false;
    this.#message = "";
    if (this.isConnected) this.#connect();
  }

  connectedCallback(): void {
    // A property that was set before the element was defined hides the accessor.
    if (Object.hasOwn(this, "autosave")) {
      const { autosave } = this;
      delete (this as { autosave?: AutoSave }).autosave;
      this.#autosave = autosave;
    }
    this.#ui ??= this.build();
    this.#connect();
  }

  disconnectedCallback(): void { this.#disconnect(); }

  attributeChangedCallback(): void {
    this.#drawDrafts();
    this.#draw();
  }

  #connect(): void {
    this.#disconnect();
    const autosave = this.#autosave;
    if (autosave) {
      const { signal } = this.#stop = new AbortController();
      signal.addEventListener("abort", autosave.subscribe(() => this.#changed()));
      for (const type of ["editable", "readonly"]) { // a refusal or a failed download was before that
        autosave.addEventListener(`autosave:${type}`, () => { this.#message = ""; }, { signal });
      }
      for (const type of ["draft", "conflict", "saved", "editable", "readonly"]) {
        autosave.addEventListener(`autosave:${type}`, () => void this.#list(), { signal });
      }
      // No event reports a draft that another page leaves as it ends.
      document.addEventListener("visibilitychange", () => { if (!document.hidden) void this.#list(); }, { signal });
      autosave.ready.then(() => this.#list(), (error: unknown) => {
        if (autosave !== this.#autosave) return;
        this.#ends(error);
        if (!this.#ended) this.#tell(error);
      }).catch(() => undefined);
    }
    this.#draw();
  }

  #disconnect(): void { this.#stop?.abort(); }

  #changed(): void {
    if (!this.#autosave?.readOnly) {
      this.#force = false;
      this.#asking = false;
    }
    // A page that reads may have ended its AutoSave.
    if (this.#autosave?.readOnly || this.#autosave?.state().drafts !== this.#counted) void this.#list();
    this.#draw();
  }

  #ends(error: unknown): void {
    this.#ended ||= ends.includes((error as { code?: string }).code ?? "");
    this.#draw();
  }

  /** The text of that name, from the attribute or in English. */
  #text(name: TextName, values: Record<string, string> = {}): string {
    return (this.getAttribute(`text-${name}`) ?? texts[name]).replace(/\{(\w+)\}/g, (all, key: string) => values[key] ?? all);
  }

  #tell(error: unknown): void {
    const { code = "", message } = error as { code?: string; message?: string };
    this.#message = code in texts ? this.#text(code as TextName) : message ?? String(error);
    this.#draw();
  }

  async #ask(force: boolean): Promise<void> {
    const autosave = this.#autosave;
    if (!autosave || this.#asking) return;
    this.#asking = true;
    this.#message = "";
    this.#draw();
    try {
      await autosave.requestEdit(force ? { force } : {});
      if (autosave === this.#autosave) this.#force = false;
    } catch (error) {
      if (autosave !== this.#autosave) return;
      this.#force = silent.includes((error as { code?: string }).code ?? "");
      this.#tell(error);
    } finally {
      if (autosave === this.#autosave) this.#asking = false;
      this.#draw();
    }
  }

  async #list(): Promise<void> {
    const autosave = this.#autosave, listing = ++this.#listing;
    this.#counted = autosave?.state().drafts ?? 0;
    const drafts = await autosave?.drafts().catch((error: unknown) => {
      if (autosave === this.#autosave) this.#ends(error);
      return [];
    }) ?? [];
    const shown = await Promise.all(drafts.map(async (draft) => ({ draft, preview: await this.#preview(draft) })));
    if (listing !== this.#listing || autosave !== this.#autosave) return;
    this.#drafts = shown;
    this.#drawDrafts();
    this.#draw();
  }

  async #preview({ id }: Draft): Promise<string | undefined> {
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await this.#autosave!.read(id));
      return text.length > previewLength ? `${text.slice(0, previewLength)} …` : text;
    } catch {
      return undefined; // the draft is no text, or no longer exists
    }
  }

  async #decide(id: string, as: "content" | "generation" | "discard"): Promise<void> {
    const autosave = this.#autosave;
    this.#message = "";
    try {
      await autosave?.resolveDraft(id, as);
    } catch (error) {
      if (autosave === this.#autosave) this.#tell(error);
    }
    await this.#list();
  }

  /** Builds the content of the element, once. */
  build() {
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [style()];
    const who = make("span", "who"), save = make("span", "save"), message = make("p", "message"), drafts = make("ul", "drafts"), heading = make("h2", "drafts-title");
    const status = make("div", "status", who);
    status.setAttribute("role", "status");
    status.tabIndex = -1;
    message.setAttribute("role", "alert");
    heading.id = "drafts-title";
    drafts.setAttribute("aria-labelledby", heading.id);
    const ask = make("button", "button ask"), force = make("button", "button force");
    ask.type = force.type = "button";
    ask.addEventListener("click", () => void this.#ask(false));
    force.addEventListener("click", () => void this.#ask(true));
    root.append(make("div", "line", status, save, ask, force), message, heading, drafts);
    return { who, save, message, drafts, heading, status, ask, force };
  }

  #draw(): void {
    const ui = this.#ui, autosave = this.#autosave;
    if (!ui) return;
    const focused = this.shadowRoot!.activeElement; // an element that is hidden loses the focus at once
    const state = autosave?.state(), readOnly = autosave?.readOnly ?? true;
    const name = state?.holder?.ownerName ?? "";
    const kind: TextName = !autosave || !state || this.#ended ? "none" : !readOnly ? "editing" : this.#asking ? "asking"
      : state.phase === "disabled" ? "disabled" : state.phase === "awaiting-lock" ? "loading" : name ? "reading" : state.lastError?.code === "not-allowed" ? "forbidden"
      : state.online === false ? "offline" : "reading-unknown"; // the lock in the way may be one of this page, which waits for the server
    const count = this.#drafts.length;
    update(ui.who, this.#text(kind, { name }) + (count ? ` ${this.#text(count === 1 ? "draft" : "drafts", { count: String(count) })}` : ""));
    ui.status.setAttribute("part", `status ${kind}`);
    update(ui.save, !state || kind === "none" || kind === "loading" || kind === "disabled" || kind === "offline" ? "" : this.#saved());
    ui.save.setAttribute("part", `save ${state?.phase ?? ""}`);
    ui.ask.hidden = !(kind === "reading" || kind === "reading-unknown" || kind === "forbidden" || kind === "asking") || this.#force;
    ui.force.hidden = !readOnly || !this.#force || kind === "none";
    for (const button of [ui.ask, ui.force]) button.setAttribute("aria-disabled", String(this.#asking)); // it keeps the focus
    update(ui.ask, this.#text("ask"));
    update(ui.force, this.#text("take-over"));
    update(ui.message, this.#message || (state?.phase === "error" && state.lastError ? state.lastError.message : ""));
    update(ui.heading, this.#text("drafts-title"));
    ui.message.hidden = !ui.message.textContent;
    ui.heading.hidden = ui.drafts.hidden = !count;
    for (const use of ui.drafts.querySelectorAll<HTMLButtonElement>("button[part~=use]")) use.hidden = readOnly;
    if ((focused as HTMLElement | null)?.hidden) ui.status.focus();
  }

  #saved(): string {
    const { phase, pendingBytes, lastSuccessAt, online } = this.#autosave!.state();
    if (phase === "error") return this.#text("failed");
    if (online === false) return this.#text("offline");
    if (phase === "writing-current" || phase === "updating-index") return this.#text("saving");
    if (pendingBytes > 0 || phase === "debouncing") return this.#text("unsaved");
    return lastSuccessAt ? this.#text("saved", { time: timeOf(lastSuccessAt, this.closest("[lang]")?.getAttribute("lang")) }) : "";
  }

  /** Draws the list. A draft keeps its row, because the focus may be in it. */
  #drawDrafts(): void {
    if (!this.#ui) return;
    const { drafts: list, status } = this.#ui;
    for (const [id, row] of this.#rows) {
      if (this.#drafts.some(({ draft }) => draft.id === id)) continue;
      if (row.item.contains(this.shadowRoot!.activeElement)) status.focus(); // its button had the focus
      row.item.remove();
      this.#rows.delete(id);
    }
    this.#drafts.forEach(({ draft, preview }, at) => {
      const row = this.#rows.get(draft.id) ?? this.row(draft);
      this.#rows.set(draft.id, row);
      update(row.text, preview === undefined ? this.#text("bytes", { count: String(draft.bytes) }) : preview || this.#text("empty"));
      for (const [name, button] of row.buttons) update(button, this.#text(name));
      if (list.children[at] !== row.item) list.insertBefore(row.item, list.children[at] ?? null);
    });
  }

  /** Builds the row of a draft, once. */
  row({ id }: Draft) {
    const text = make("span", "draft-text");
    text.id = `draft-${++this.#made}`;
    const decide = (name: "use" | "keep" | "discard", as: "content" | "generation" | "discard") => {
      const button = make("button", `button ${name}`);
      button.type = "button";
      button.setAttribute("aria-describedby", text.id);
      button.addEventListener("click", () => void this.#decide(id, as));
      return [name, button] as const;
    };
    const buttons = [decide("use", "content"), decide("keep", "generation"), decide("discard", "discard")];
    return { item: make("li", "draft", text, ...buttons.map(([, button]) => button)), text, buttons };
  }
}

if (globalThis.customElements && !customElements.get(tag)) customElements.define(tag, HoldfastStatus);
