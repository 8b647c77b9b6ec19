// The helper worker behind page-timers.ts: it answers each {id, ms} with id, ms later.

onmessage = ({ data: { id, ms } }: MessageEvent<{ id: number; ms: number }>) => {
  setTimeout(() => postMessage(id), ms);
};
