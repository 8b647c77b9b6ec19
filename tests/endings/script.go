package endings

// StoresWord defines storesWord(word, root, folder), which reports whether a record of IndexedDB contains a word. A root
// limits it to one project, a folder to its drafts, say.
const StoresWord = `globalThis.storesWord = async (word, root = '', folder = '') => {
	if (!(await indexedDB.databases()).some(({name}) => name === 'holdfast')) return false
	const result = request => new Promise((done, failed) => { request.onsuccess = () => done(request.result); request.onerror = failed })
	const database = await result(indexedDB.open('holdfast'))
	const files = database.transaction('files').objectStore('files')
	const [keys, all] = await Promise.all([result(files.getAllKeys()), result(files.getAll())])
	database.close()
	const text = bytes => bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : ''
	return all.some((file, i) => keys[i][0].includes('/' + root) && keys[i][1].includes(folder) && (text(file) + text(file.content)).includes(word))
}`

// Script gives a page with the AutoSave `autosave` the functions places and drafted. They return where a word is,
// using only what every page that opens the document can see.
const Script = `{
const has = async (id, word, saver) => new TextDecoder().decode(await saver.read(id)).includes(word)
const places = async (word, saver = autosave) => {
  const history = await saver.history()
  if (history.length > 0 && await has('current', word, saver)) return 'content'
  for (const {id} of history) if (await has(id, word, saver)) return 'history'
  return await drafted(word, saver) ? 'draft' : 'nowhere'
}
const drafted = async (word, saver = autosave) => {
  for (const {id} of await saver.drafts()) if (await has(id, word, saver)) return true
  return false
}
Object.assign(globalThis, {places, drafted})
}
1`

// Editing gives a page with a prelude an editor, as properties of globalThis: a text that saves itself, and its
// events.
const Editing = `{
globalThis.autosave = undefined
globalThis.text = ''
const told = [], offered = []
const decode = bytes => new TextDecoder().decode(bytes)
const edit = async (options, take = () => text) => {
  const since = now()
  globalThis.autosave = await hf.initAutoSave(take, options)
  autosave.took = now() - since
  for (const type of ['phase', 'saved', 'readonly', 'editable']) autosave.addEventListener('autosave:' + type, ({detail: {content, unsaved, ...detail}}) => {
    const event = {...plain(detail), type, seen: now()}
    if (content) globalThis.text = event.content = decode(content)
    if (unsaved) offered.push(event.unsaved = decode(unsaved))
    told.push(event)
  })
  return autosave
}
const heard = type => told.filter(e => e.type === type)
const type = more => { text += more; autosave.markDirty() }
const current = async () => decode(await autosave.read('current'))
const sleep = ms => new Promise(done => setTimeout(done, ms))
// full fills localStorage up to the last character.
const full = () => {
  for (let size = 1 << 20, n = 0; size >= 1; size >>= 1)
    for (;; n++) try { localStorage.setItem('full' + n, 'x'.repeat(size)) } catch { break }
}
Object.assign(globalThis, {told, offered, decode, edit, heard, type, current, sleep, full})
}
1`
