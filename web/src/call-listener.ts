/** Calls a listener. If it throws, nothing changes for the others, and the page's own error handler gets the error. */
export function callListener(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    reportError(error);
  }
}
