// The view in which a user decides about a draft: text of a tab that was not saved. It shows the three sides beside
// each other. The user chooses by pointer or keyboard, and sees the changes of a choice before making it.

import type { Draft } from "./holdfast.js";
import { drawDiff, drawText } from "./diff-view.js";
import { byId, make, setAttribute, setText } from "./dom.js";
import { size } from "./lists.js";
import { merge } from "./merge.js";
import { clock } from "./time.js";

/** The three sides of a draft. */
export interface Sides { base: string | undefined; mine: string; theirs: string }

/** The base is missing if it is no longer kept, and the saved text if the server does not answer or does not let the user read it. */
export type Read = Omit<Sides, "theirs"> & Partial<Pick<Sides, "theirs">>;

export interface Actions {
  sides(draft: Draft): Promise<Read>;
  /** The text of the draft. */
  text(draft: Draft): Promise<string>;
  /** Makes the draft the content. */
  adopt(draft: Draft): Promise<void>;
  /** Makes the merged text the content, and keeps the draft in the history. */
  use(draft: Draft, merged: (sides: Sides) => string): Promise<void>;
  /** Keeps the saved text, and keeps the draft in the history. */
  keep(draft: Draft): Promise<void>;
  discard(draft: Draft): Promise<void>;
  /** Runs an action of the user and shows its failure. */
  attempt(action: () => Promise<void>): Promise<void>;
  /** Shows a failure that no action of the user has caused. */
  tell(failure: unknown): void;
}

type Choice = "mine" | "theirs" | "both";

const causes: Record<Draft["cause"], string> = {
  closed: "the tab was closed", crashed: "the tab crashed", "lock-lost": "another tab took over",
  offline: "the server was out of reach", "save-failed": "saving failed",
};

/** The codes of calls whose runtime was closed, because the user gave the tab another name. */
const ends = ["aborted", "disposed"];

export class Decide {
  readonly #actions: Actions;
  readonly #select = byId<HTMLSelectElement>("decide-draft");
  #drafts: Draft[] = [];
  #sides: Sides | undefined;
  #shown = "";

  constructor(actions: Actions) {
    this.#actions = actions;
    this.#select.addEventListener("change", () => void this.#show());
    for (const radio of this.#radios) radio.addEventListener("change", () => this.#drawResult());
    this.#button("decide-use", (draft) => this.#decide(draft));
    this.#button("decide-copy", async (draft) => navigator.clipboard.writeText(await this.#actions.text(draft)));
    this.#button("decide-discard", (draft) => this.#actions.discard(draft));
  }

  get #radios(): HTMLInputElement[] { return [...document.querySelectorAll<HTMLInputElement>('input[name="decide-choice"]')]; }

  get #choice(): Choice { return (this.#radios.find(({ checked }) => checked)?.value ?? "both") as Choice; }

  get #draft(): Draft | undefined { return this.#drafts.find(({ id }) => id === this.#select.value) ?? this.#drafts[0]; }

  #button(id: string, act: (draft: Draft) => Promise<void>): void {
    const button = byId(id);
    button.addEventListener("click", () => {
      const draft = this.#draft;
      if (draft && button.getAttribute("aria-disabled") !== "true") void this.#actions.attempt(() => act(draft));
    });
  }

  /** Draws the drafts that wait for a decision. A read-only page can view, copy and discard them. */
  draw(drafts: Draft[], readOnly: boolean, revision: string): void {
    const section = byId("decide");
    const focused = section.contains(document.activeElement);
    section.hidden = drafts.length === 0;
    if (focused && section.hidden) byId("text").focus(); // the user decided with the keyboard
    setAttribute(byId("decide-use"), "aria-disabled", String(readOnly)); // it keeps the focus, for a page that may write again soon
    const shape = JSON.stringify([drafts, revision]);
    if (shape === this.#shown) return;
    this.#shown = shape;
    const before = this.#draft?.id;
    this.#drafts = drafts;
    this.#select.replaceChildren(...drafts.map(({ id, at, bytes, ownerName, cause }) => {
      const option = make("option", "", `${clock(at)}, ${size(bytes)}${ownerName ? `, by ${ownerName}` : ""}: ${causes[cause]}`);
      option.value = id;
      option.selected = id === before;
      return option;
    }));
    setText(byId("decide-title"), drafts.length > 1 ? `Not saved: ${drafts.length} drafts` : "Not saved: one draft");
    void this.#show();
  }

  async #show(): Promise<void> {
    const draft = this.#draft;
    if (!draft) return;
    const sides = await this.#actions.sides(draft).catch((failure: unknown) => {
      const { code = "" } = failure as { code?: string };
      if (ends.includes(code)) this.#shown = ""; // the next runtime shows it
      else if (code !== "not-found") this.#actions.tell(failure); // otherwise it was saved, or another tab has decided
    });
    if (!sides || draft !== this.#draft) return; // the user has chosen another draft meanwhile
    const { base = "", mine, theirs } = sides;
    this.#sides = theirs === undefined ? undefined : { base, mine, theirs };
    setText(byId("decide-base"), sides.base === undefined ? "Not kept any more." : base || "An empty text.");
    drawDiff(byId("decide-mine"), base, mine);
    if (theirs === undefined) drawText(byId("decide-theirs"), "Cannot be read now.");
    else drawDiff(byId("decide-theirs"), base, theirs);
    this.#drawResult();
  }

  #drawResult(): void {
    if (!this.#sides) {
      drawText(byId("decide-result"), "");
      setText(byId("decide-note"), "");
      return;
    }
    drawDiff(byId("decide-result"), this.#sides.theirs, this.#result(this.#sides).text);
    const { overlaps } = this.#result(this.#sides);
    setText(byId("decide-note"), overlaps === 0 ? "" : overlaps === 1 ? "One place was changed on both sides: it has both versions." : `${overlaps} places were changed on both sides: they have both versions.`);
  }

  #result({ base, mine, theirs }: Sides): { text: string; overlaps: number } {
    if (this.#choice === "both") return merge(base ?? "", mine, theirs);
    return { text: this.#choice === "mine" ? mine : theirs, overlaps: 0 };
  }

  #decide(draft: Draft): Promise<void> {
    if (this.#choice === "mine") return this.#actions.adopt(draft);
    if (this.#choice === "theirs") return this.#actions.keep(draft);
    return this.#actions.use(draft, ({ base, mine, theirs }) => merge(base ?? "", mine, theirs).text);
  }
}
