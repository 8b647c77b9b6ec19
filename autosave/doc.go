// Package autosave saves what a page edits, by itself, and loses nothing.
//
// A [Saver] holds the project's lock while its page edits. It takes a snapshot when
// typing pauses, commits it to a [Store] under the lease's fencing token, and tells the
// page by events what it does and whether it may write. A page that may not is
// read-only, waits for its turn, and can ask the one that edits to hand over. The
// package is pure Go: it knows neither browsers nor files; a [Layout] is the Store over
// any place that can list, read, write and remove [Files].
//
// # What is guaranteed
//
//   - A generation that was acknowledged (autosave:saved, FlushNow) is durable and whole,
//     and every later editor sees it.
//   - Nothing is committed over what a later editor has saved, even by a page that was
//     frozen in the middle of a commit and wakes at any time.
//   - Text that a page could not save is a [Draft], if there is a place for [Drafts]. The next
//     editor makes it the content, merges it, or leaves it to a person. It is removed by a
//     commit that contains it or by a decision. The text is offered with
//     autosave:readonly and with autosave:editable as well, until the page has saved something.
//   - A change waits at most Config.Idle before it is written, while the store works.
//   - Nothing waits without a limit: not for a lock, a store, a listener, nor for another
//     page.
//
// # What is not
//
// A page that is killed loses what it has neither saved nor journalled. A draft that was
// merged is merged once more where the killed page left a torn index: the store has
// forgotten then what the generation contains. A storage that the browser empties takes all
// generations with it; what is open is saved anew.
package autosave
