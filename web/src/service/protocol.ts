// The messages of a service. Tokens order its terms: a later term has a greater one.

import type { unreadable } from "./lines";
import type { Described } from "./values";

/** To all tabs that use the service, over one BroadcastChannel. */
export type ToAll =
  | { began: number }                       // the token of a term whose tab accepts calls from now on
  | { connect: string }                     // a tab wants to call: the name of a channel for the two
  | { failed: Described };                  // `start` has failed in a tab

/** From the calling tab. Its calls are numbered from 1 in each term, and are accepted in that order. */
export type ToServing =
  | typeof unreadable
  | { token: number; n: number; method: string; args: unknown[]; assumed?: true } // assumed: the caller needs no acceptance
  | { token: number; bye: true };                 // the tab calls no more in this term, and receives which calls were accepted

/** From the serving tab. A number says that the call of that number is accepted; it is sent before the function is called. */
export type ToCalling =
  | typeof unreadable
  | number
  | { token: number; hello: true; locked: boolean } // locked: the page holds the lock of its term
  | { token: number; n: number; value: unknown }
  | { token: number; n: number; error: Described }
  | { token: number; end: number };                // the term is over; calls up to this number were accepted
