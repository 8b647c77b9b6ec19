package events

import (
	"strings"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// recentLength is how many changes the hub keeps: enough for clients that lose their connection for a moment, and
// less than a megabyte.
const recentLength = 1024

// recent contains the latest changes of all documents. It serves clients that come back in time, because a watch of
// past changes costs the store a search and waits up to 100 ms for etcd.
type recent struct {
	since   int64      // all changes after this revision are here, up to last
	last    int64      // the revision of the latest change
	changes []kv.Entry // a ring, once full
	oldest  int
}

// begin forgets all changes up to a revision.
func (r *recent) begin(revision int64) { *r = recent{since: revision, last: revision} }

func (r *recent) add(e kv.Entry) {
	r.last = e.Modified
	if len(r.changes) < recentLength {
		r.changes = append(r.changes, e)
		return
	}
	r.since = r.changes[r.oldest].Modified
	r.changes[r.oldest] = e
	r.oldest = (r.oldest + 1) % recentLength
}

// after returns the changes of a document after a revision. known is false if some of them are missing or the revision is
// in the future.
func (r *recent) after(document string, revision int64) (list []kv.Entry, known bool) {
	if revision < r.since || revision > r.last {
		return nil, false
	}
	for i := range r.changes {
		e := r.changes[(r.oldest+i)%len(r.changes)]
		if e.Modified > revision && strings.TrimPrefix(e.Key, prefix) == document {
			list = append(list, e)
		}
	}
	return list, true
}
