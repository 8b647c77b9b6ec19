// A disk that may lose what was not flushed, and a check that a draft file survives it.
import { DraftFile } from "../draftfile.js";

/** Pseudo-random numbers that a seed reproduces. */
function random(seed) {
  let state = seed * 2654435761 + 1 >>> 0;
  return (n) => {
    state = Math.imul(state ^ state >>> 15, 0x2c1b3c6d) + 0x9e3779b9 >>> 0;
    return (state ^ state >>> 13) % n;
  };
}

class Disk {
  durable = new Uint8Array(0);
  pending = [];
  written = () => undefined; // called after each write
  content() { return applied(this.durable, this.pending); }
  getSize() { return this.content().length; }
  read(buffer, { at }) {
    const part = this.content().subarray(at, at + buffer.length);
    buffer.set(part);
    return part.length;
  }
  write(data, { at }) {
    this.pending.push({ at, data: data.slice() });
    this.written();
    return data.length;
  }
  flush() {
    this.durable = this.content();
    this.pending = [];
  }
  close() {}
}

function applied(before, writes) {
  const size = Math.max(before.length, ...writes.map(({ at, data }) => at + data.length));
  const bytes = new Uint8Array(size);
  bytes.set(before);
  for (const { at, data } of writes) bytes.set(data, at);
  return bytes;
}

/** Returns the text that a program finds if it opens the file after this. */
function found(bytes) {
  const disk = new Disk();
  disk.durable = bytes;
  const file = new DraftFile(disk);
  return { number: file.number, text: file.filled ? new TextDecoder().decode(file.content()) : "" };
}

/** Splits a write into sectors of 512 bytes, each of which a loss of power keeps or drops. */
function sectors({ at, data }) {
  const all = [];
  for (let from = 0, to; from < data.length; from = to) {
    to = Math.min(data.length, (Math.floor((at + from) / 512) + 1) * 512 - at);
    all.push({ at: at + from, data: data.subarray(from, to) });
  }
  return all;
}

/** Runs one history; returns a description of the failure, or "". */
export function check(seed) {
  const dice = random(seed);
  const disk = new Disk();
  let file = new DraftFile(disk);
  const texts = [""]; // by number
  let done = 0, flushed = 0;
  const wrong = [];
  const expect = (what, { number, text }, least) => {
    if (number < least || number >= texts.length || texts[number] !== text) wrong.push(`${what}: has ${number} of ${least} to ${texts.length - 1}`);
  };
  disk.written = () => {
    const { pending, durable } = disk;
    expect("killed", found(applied(durable, pending)), done);
    const last = pending.at(-1);
    const torn = { at: last.at, data: last.data.subarray(0, dice(last.data.length + 1)) };
    expect("killed in a write", found(applied(durable, [...pending.slice(0, -1), torn])), done);
    const all = pending.flatMap(sectors);
    for (let i = 0; i < 4; i++) {
      const kept = all.filter(() => dice(4) < i).map((part) => ({ part, order: dice(1000) })).sort((a, b) => a.order - b.order);
      expect("without power", found(applied(durable, dice(2) ? kept.map(({ part }) => part) : all.filter(() => dice(2)))), flushed);
    }
  };
  for (let number = 1; number <= 24 && !wrong.length; number++) {
    const size = [0, 10, 3000, 9000, 20000][dice(5)];
    const text = dice(6) ? String.fromCharCode(97 + number).repeat(size) : undefined;
    texts.push(text ?? "");
    file.put({ number, base: "1-2", cause: "", ownerId: "o", ownerName: "n", at: 1 }, text === undefined ? undefined : new TextEncoder().encode(text));
    done = number;
    if (dice(6) === 0) {
      file.flush();
      flushed = number;
    }
    if (dice(5) === 0) file = new DraftFile(disk); // the page is gone, and another one opens the file
  }
  return wrong.join("\n");
}
