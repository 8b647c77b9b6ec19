// Not bundled: here tsc compares the exports of the facade with the declarations in holdfast.d.ts.

import type * as Contract from "../holdfast";
import * as facade from "./holdfast";

type Names = { [name in keyof typeof Contract]: unknown };

export const names: Names = facade;
export const open: typeof Contract.openHoldfast = facade.openHoldfast;
export const create: typeof Contract.createHoldfast = facade.createHoldfast;
export const preload: typeof Contract.preloadHoldfast = facade.preloadHoldfast;
export const error: { prototype: Contract.ProjectLockError } = facade.ProjectLockError;
