/** How the page tells Go that it could not answer. */
export const failed = (error: unknown): { failed: string } => ({ failed: String((error as Error)?.message || error || "no") });
