// The facade imports the link to the worker as a module of its own, "./holdfast-host.js".
export * from "./host";
