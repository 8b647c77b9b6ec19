/** A random UUID, also where crypto.randomUUID is missing: on pages that are not secure. */
export function uuid(): string {
  const random = crypto.getRandomValues(new Uint8Array(36));
  return "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, (_, at: number) => (random[at]! % 16).toString(16));
}
