/** A random UUID, also where crypto.randomUUID is missing: on pages that are not secure. */
export const uuid = (): string =>
  "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, () => (crypto.getRandomValues(new Uint8Array(1))[0]! % 16).toString(16));
