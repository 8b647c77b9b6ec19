// A program that uses the declarations of the package. The test compiles it with every version of TypeScript that the package supports.
import "holdfast/element";
import { AutoSaveError, createHoldfast, openHoldfast, preloadHoldfast, ProjectLockError } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";

export async function edit(field: HTMLTextAreaElement, signal: AbortSignal): Promise<number> {
  await preloadHoldfast();
  await using holdfast = await openHoldfast({ ownerName: "Ann", signal });
  holdfast.addEventListener("lock:acquired", ({ detail }) => console.log(detail.lease.token));
  await using lease = await holdfast.acquireProjectLock({ timeoutMs: 1000, signal });
  await using autosave = holdfast.createAutoSave(() => field.value, { path: ["notes"], signal });
  autosave.addEventListener("autosave:editable", ({ detail }) => {
    field.value = new TextDecoder().decode(detail.content);
    // @ts-expect-error: the content is bytes
    field.value = detail.content;
  });
  // @ts-expect-error: there is no such event
  autosave.addEventListener("autosave:nothing", ({ detail }) => console.log(detail));
  return lease.token;
}

export const retryable = (error: unknown): boolean => (error instanceof ProjectLockError || error instanceof AutoSaveError) && error.retryable;

export const tabs = createTestHoldfast();
export const other = createHoldfast().ready;
