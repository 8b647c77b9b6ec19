// The facade imports services as a module of its own, "./holdfast-serve.js".
export * from "./service/serve";
