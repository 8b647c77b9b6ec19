// Gives Go the locks that the page took while it was loading.

import type { Port } from "../../jsbridge/port.js";
import type { Loan } from "./lend";

/** Calls Go with the argument. If Go does not take the locks that come with it, they are released. */
export async function lending(port: Port, arg: unknown, call: (arg: unknown) => Promise<unknown>): Promise<unknown> {
  const { lent } = { ...(arg as { lent?: Loan }) };
  if (!lent) return call(arg);
  lent.given = true;
  port.lend(lent.number, lent);
  try {
    return await call({ ...(arg as object), lent: lent.number });
  } finally {
    port.reclaim(lent.number);
  }
}
