// The page's answer when Go asks for the user's token at the server.

import { failedAnswer } from "./failed-answer";
import type { Token } from "./options";
import type { RawEvent } from "./protocol";

/** Answers a question of Go with what the function of the page returns. */
export async function giveToken({ ask }: RawEvent, token: Token | undefined, answer: (found: object) => Promise<unknown> | undefined): Promise<void> {
  const found = await token?.().then((text) => ({ token: typeof text === "string" ? text : "" }), failedAnswer);
  await answer({ ...found, ask })?.catch(() => undefined);
}
