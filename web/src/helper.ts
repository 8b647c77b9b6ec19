// The helper worker of a page in which Go runs: it answers each {id, ms} of page-timers.ts
// with id, ms later, and opens files as opfs/files.js asks.

import { serve } from "../../opfs/files.js";

type Ask = { id: number; ms: number } | Parameters<typeof serve>[0];

onmessage = async ({ data }: MessageEvent<Ask>) => {
  if ("ms" in data) setTimeout(postMessage, data.ms, data.id);
  else postMessage(await serve(data));
};
