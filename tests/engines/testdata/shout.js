// A worker that makes errors, to see which listener gets them.
console.error("planted: worker console")
throw new RangeError("planted: worker exception")
