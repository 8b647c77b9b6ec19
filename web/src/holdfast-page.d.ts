// The facade imports the page host as a module of its own, "./holdfast-page.js".
export * from "./page";
