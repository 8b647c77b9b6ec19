// The build makes this module of tab.ts.
declare const run: (globals: object) => typeof import("./tab");
export default run;
