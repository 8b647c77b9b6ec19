// A worker that makes errors, to see who hears them.
console.error("planted: worker console")
throw new RangeError("planted: worker exception")
