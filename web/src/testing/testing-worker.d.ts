// The build makes this module of worker.ts.
declare const run: (globals: object) => unknown;
export default run;
