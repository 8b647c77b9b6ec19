// Starts the package's workers, also where its files are of another origin than the page.

/**
 * Starts a worker from the URL, or else the one beside this module: bundlers look for `new Worker(new URL(…))` with a literal. A page may not
 * start a worker from another origin. So a worker of the page's own imports it: from the URL, or from the folder of the Wasm. A
 * sandboxed page has no origin, and no locks either: it fails as it does without this.
 */
export function startScript(name: string, url: URL | undefined, beside: () => Worker, wasm: string): Worker {
  if (!url) {
    try {
      return beside();
    } catch { // this module is of another origin
      url = new URL(name, wasm);
    }
  }
  const script = [url.origin, "null"].includes(self.origin) ? url : URL.createObjectURL(new Blob([`import ${JSON.stringify(url)}`], { type: "text/javascript" }));
  return new Worker(script, { type: "module" });
}
