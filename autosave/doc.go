// Package autosave saves the text that a page edits, automatically and without loss.
//
// A [Saver] holds the project's lock while its page edits. It takes a snapshot when typing pauses and commits it to a
// [Store] under the lease's fencing token. It reports by events what it does and whether the page may write. A page
// that may not write is read-only, waits for its turn, and can ask the editing page to hand over. The package is pure
// Go and knows neither browsers nor files. A [Layout] is the Store over any place that can list, read, write and remove
// [Files].
//
// # Guarantees
//
//   - An acknowledged generation (autosave:saved, FlushNow) is durable and whole, and every later editor sees it.
//   - Nothing is committed over the content of a later editor. This holds for a page that was frozen in the middle of a
//     commit, whenever it wakes.
//   - Text that a page could not save is a [Draft], if Config.Drafts is set. The next editor makes it the content,
//     merges it, or leaves it to the user. It is removed by a commit that contains it or by a decision. The events
//     autosave:readonly and autosave:editable also offer the text, until the page has saved something.
//   - A change waits at most Config.Idle before it is written, while the store works.
//   - No call waits without a limit for a lock, a store, a listener or another page.
//
// # Limits
//
// A killed page loses the text that it has neither saved nor journalled. If it leaves a torn index, a merged draft is
// merged once more: the store has forgotten that the generation contains the draft. If the browser empties the storage,
// all generations are lost. Open text is saved again.
package autosave
