// Instants and durations in a readable form. All input is in milliseconds.

const two = (value: number): string => String(value).padStart(2, "0");

/** "12:03:04", in the reader's own time zone; "1 Dec 12:03:04" on another day, "1 Dec 2026 12:03:04" in another year. */
export function clock(at: number): string {
  const date = new Date(at), now = new Date();
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === now.toDateString()) return time;
  const year = date.getFullYear() === now.getFullYear() ? {} : { year: "numeric" } as const;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year })} ${time}`;
}

/** "12:03:04.123". */
export function preciseClock(at: number): string {
  return `${clock(at)}.${String(new Date(at).getMilliseconds()).padStart(3, "0")}`;
}

/**
 * A duration that grows: "38 s", "4 min 05 s", "2 h 07 min". Never negative, because the clocks of two tabs may differ.
 */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** A countdown or a delay, with tenths while it is short: "2.1 s", "48 s", "3 min 20 s". */
export function remaining(ms: number): string {
  const left = Math.max(0, ms);
  return left < 59_950 ? `${(left / 1000).toFixed(1)} s` : elapsed(left);
}
