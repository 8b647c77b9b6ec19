// The facade imports the part that edits before the runtime runs as a module of its own, "./holdfast-early.js".
export * from "./early";
