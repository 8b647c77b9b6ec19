// Trusted Types: a page that requires them lists the policy "holdfast".

interface Policy { createScriptURL(url: string): string }
interface Factory { createPolicy(name: string, rules: Policy): Policy }

const key = Symbol.for("holdfast.policy");
const scope = globalThis as { trustedTypes?: Factory; [key]?: Policy };

/** Returns the URL of a script of the package for new Worker. All copies of the package in a page share one policy: its name may be used once. */
export const trusted = (url: string): string =>
  (scope[key] ??= scope.trustedTypes?.createPolicy("holdfast", { createScriptURL: (script) => script }))?.createScriptURL(url) ?? url;
