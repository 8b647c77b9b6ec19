// The parts of the frameworks that the entries use. Their packages are peers that a project brings.

declare module "react" {
  export function useCallback<T>(callback: T, deps: readonly unknown[]): T;
  export function useEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void;
  export function useLayoutEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void;
  export function useMemo<T>(make: () => T, deps: readonly unknown[]): T;
  export function useRef<T>(initial: T): { current: T };
  export function useRef<T>(initial: undefined): { current: T | undefined };
  export function useState<T>(initial: () => T): [T, (value: T) => void];
  export function useState<T>(): [T | undefined, (value: T) => void];
  export function useSyncExternalStore<T>(subscribe: (listener: () => void) => () => void, get: () => T, server: () => T): T;
}

declare module "vue" {
  export interface Ref<T> { value: T }
  export function shallowRef<T>(value: T): Ref<T>;
  export function computed<T>(options: { get(): T; set(value: T): void }): Ref<T>;
  export function computed<T>(get: () => T): Readonly<Ref<T>>;
  export function onMounted(hook: () => void): void;
  export function onBeforeUnmount(hook: () => void): void;
  export function toRaw<T>(value: T): T;
  export function unref<T>(value: T | Ref<T>): T;
  export function watch<T>(source: () => T, callback: (value: T) => void, options: { flush: "sync" }): () => void;
}

declare module "node:crypto" { export const webcrypto: Crypto }
declare module "node:fs/promises" { export function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> }
declare module "node:timers" { export function setImmediate(run: () => void): void }
declare module "node:util" {
  const decoder: typeof TextDecoder, encoder: typeof TextEncoder;
  export { decoder as TextDecoder, encoder as TextEncoder };
}
