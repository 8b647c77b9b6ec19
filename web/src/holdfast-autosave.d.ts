// The facade imports AutoSave as a module of its own, "./holdfast-autosave.js".
export * from "./autosave";
