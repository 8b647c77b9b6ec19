// The difference of two texts: a longest common subsequence, by dynamic programming on the part that differs. The
// difference is computed by words; by lines if there are too many words; as a whole if there are too many lines.

export interface Piece { kind: "same" | "gone" | "new"; text: string }

const mostCells = 4_000_000;

const words = /\s+|[^\s]+/g;
const lines = /[^\n]*\n|[^\n]+/g;

/** The difference by words, or by larger pieces if the texts differ too much. */
export const diff = (before: string, after: string): Piece[] => inPieces(before, after, [words, lines]);

/** The difference in whole lines. */
export const diffLines = (before: string, after: string): Piece[] => inPieces(before, after, [lines]);

function inPieces(before: string, after: string, patterns: RegExp[]): Piece[] {
  for (const pattern of patterns) {
    const pieces = compare(before.match(pattern) ?? [], after.match(pattern) ?? []);
    if (pieces) return merge(pieces);
  }
  return [{ kind: "gone", text: before }, { kind: "new", text: after }];
}

function compare(before: string[], after: string[]): Piece[] | undefined {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [endBefore, endAfter] = [before.length, after.length];
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) { endBefore--; endAfter--; }
  const middle = common(before.slice(start, endBefore), after.slice(start, endAfter));
  if (!middle) return undefined;
  const same = (texts: string[]): Piece[] => texts.map((text) => ({ kind: "same", text }));
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(endBefore))];
}

function common(before: string[], after: string[]): Piece[] | undefined {
  const width = after.length + 1;
  if ((before.length + 1) * width > mostCells) return undefined;
  const length = new Uint32Array((before.length + 1) * width); // of the common part from here on
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      length[i * width + j] = before[i] === after[j] ? length[(i + 1) * width + j + 1]! + 1
        : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
    }
  }
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      pieces.push({ kind: "same", text: before[i++]! });
      j++;
    } else if (j === after.length || (i < before.length && length[(i + 1) * width + j]! >= length[i * width + j + 1]!)) {
      pieces.push({ kind: "gone", text: before[i++]! });
    } else {
      pieces.push({ kind: "new", text: after[j++]! });
    }
  }
  return pieces;
}

function merge(pieces: Piece[]): Piece[] {
  const merged: Piece[] = [];
  for (const piece of pieces) {
    const last = merged.at(-1);
    if (last?.kind === piece.kind) last.text += piece.text;
    else merged.push({ ...piece });
  }
  return merged;
}
