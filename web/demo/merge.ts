// Merges two texts that changed since a common base, line by line (the idea of diff3). It takes changes of different
// lines from both sides. If both sides changed the same lines, it keeps both versions, theirs first: nothing is
// dropped.

import { diffLines } from "./diff.js";

/** A change: the lines [start, end) of the base become the given lines. */
interface Change { start: number; end: number; lines: string[] }

export interface Merged { text: string; /** How many places both sides changed in different ways. */ overlaps: number }

export function merge(base: string, mine: string, theirs: string): Merged {
  const all = [...changes(base, theirs).map((change) => ({ ...change, side: 0 })), ...changes(base, mine).map((change) => ({ ...change, side: 1 }))]
    .sort((a, b) => a.start - b.start || a.end - b.end || a.side - b.side);
  const lines = split(base);
  const out: string[] = [];
  let at = 0;
  let overlaps = 0;
  for (let i = 0; i < all.length;) {
    const { start } = all[i]!;
    let { end } = all[i]!;
    let next = i + 1;
    // Changes that touch the same lines, and insertions at the same place, form one group.
    while (next < all.length && (all[next]!.start < end || all[next]!.start === start)) end = Math.max(end, all[next++]!.end);
    const group = all.slice(i, next);
    const versions = [0, 1].filter((side) => group.some((change) => change.side === side))
      .map((side) => apply(lines, start, end, group.filter((change) => change.side === side)));
    out.push(...lines.slice(at, start), ...versions[0]!);
    if (versions.length > 1 && versions[0]!.join("") !== versions[1]!.join("")) {
      overlaps++;
      endLine(out);
      out.push(...versions[1]!);
    }
    at = end;
    i = next;
  }
  return { text: [...out, ...lines.slice(at)].join(""), overlaps };
}

/** The lines [start, end) of the base with one side's changes. */
function apply(base: string[], start: number, end: number, changes: Change[]): string[] {
  const out: string[] = [];
  let at = start;
  for (const change of changes) {
    out.push(...base.slice(at, change.start), ...change.lines);
    at = change.end;
  }
  return [...out, ...base.slice(at, end)];
}

function endLine(lines: string[]): void {
  const last = lines.at(-1);
  if (last !== undefined && !last.endsWith("\n")) lines[lines.length - 1] = `${last}\n`;
}

const split = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+/g) ?? [];

function changes(base: string, text: string): Change[] {
  const found: Change[] = [];
  let at = 0;
  let open: Change | undefined;
  for (const { kind, text: piece } of diffLines(base, text)) {
    const lines = split(piece);
    if (kind === "same") {
      at += lines.length;
      open = undefined;
      continue;
    }
    if (!open) found.push(open = { start: at, end: at, lines: [] });
    if (kind === "gone") open.end = at += lines.length;
    else open.lines.push(...lines);
  }
  return found;
}
