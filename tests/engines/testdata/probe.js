// A worker that says whether OPFS sync access handles work here and are exclusive: "yes", or why not.
const probe = async () => {
  if (!navigator.storage) return "navigator.storage is missing"
  if (!navigator.storage.getDirectory) return "navigator.storage.getDirectory is missing"
  const root = await navigator.storage.getDirectory()
  const file = await root.getFileHandle("probe", { create: true })
  if (!file.createSyncAccessHandle) return "createSyncAccessHandle is missing"
  const handle = await file.createSyncAccessHandle()
  try {
    handle.write(new TextEncoder().encode("probe"), { at: 0 })
    handle.flush()
    if (handle.getSize() !== 5) return "the written bytes are not there"
    const second = await file.createSyncAccessHandle().then(() => "admitted", e => e.name)
    return second === "admitted" ? "a second handle is admitted" : "yes; a second one is refused with " + second
  } finally {
    handle.close()
    await root.removeEntry("probe")
  }
}
probe().catch(error => String(error)).then(answer => postMessage(answer))
