/** How the page tells Go that it could not answer. */
export const failedAnswer = (error: unknown): { failed: string } => ({ failed: String((error as Error)?.message || error || "no") });
