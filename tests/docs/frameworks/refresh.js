// Fast Refresh, which must begin before React does.

import { injectIntoGlobalHook, performReactRefresh, register } from "react-refresh/runtime";

injectIntoGlobalHook(globalThis);

/** Makes two versions of a component, and replaces the first one by the second one at `refresh()`, as a saved file does. */
export function refreshed(versions) {
  register(versions[0], "Refreshed");
  globalThis.refresh = () => {
    register(versions[1], "Refreshed");
    performReactRefresh();
  };
  return versions[0];
}
