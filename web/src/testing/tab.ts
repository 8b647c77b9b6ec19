// The module that a page of a test runs: the facade and AutoSave. The build wraps it into a function of the globals.

export { createHoldfast } from "../holdfast";
