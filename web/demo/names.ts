// A tab needs a name that two people can say aloud: "Amber Otter is editing".

const first = ["Amber", "Brave", "Calm", "Copper", "Coral", "Dapper", "Early", "Gentle", "Golden", "Hazel", "Indigo",
  "Jolly", "Keen", "Lucky", "Merry", "Misty", "Nimble", "Quiet", "Rosy", "Silver", "Sunny", "Swift", "Velvet", "Wise"];
const second = ["Auk", "Badger", "Crane", "Dolphin", "Eider", "Finch", "Gannet", "Hare", "Heron", "Ibis", "Kelpie",
  "Lark", "Marten", "Newt", "Otter", "Plover", "Puffin", "Raven", "Seal", "Starling", "Tern", "Urchin", "Whale", "Wren"];

const key = "holdfast-demo.name";
const pick = (from: string[]): string => from[Math.floor(Math.random() * from.length)] ?? "Amber";

export function friendlyName(): string {
  return `${pick(first)} ${pick(second)}`;
}

/** This tab's name. It belongs to the tab (sessionStorage), so that it survives a reload but two tabs differ. */
export function loadName(): string {
  const name = read(key) ?? friendlyName();
  saveName(name);
  return name;
}

/** The part of a name that fits the limit of a room. */
export function shortName(name: string): string {
  return [...name].slice(0, 24).join("");
}

export function saveName(name: string): void {
  write(key, name);
}

// Storage can be disabled in the browser's settings, and using it then throws. The demo works without it.
export function read(name: string): string | undefined {
  try {
    return sessionStorage.getItem(name) || undefined;
  } catch {
    return undefined;
  }
}

export function write(name: string, value: string): void {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // The value then lasts as long as the page.
  }
}
