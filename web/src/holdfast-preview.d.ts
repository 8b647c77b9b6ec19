// The facade imports the preview as a module of its own, "./holdfast-preview.js".
export * from "./preview";
