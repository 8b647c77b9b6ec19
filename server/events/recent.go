package events

import (
	"strings"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// recentLength is how many changes are remembered: enough for all who lost their connection for a moment, and less than a
// megabyte.
const recentLength = 1024

// recent are the latest changes of all documents. Whoever comes back in time is served from here: a watch of the past
// costs the store a search for each, and waits for up to 100 ms until etcd gets around to it.
type recent struct {
	since   int64      // every change after this revision is here, up to last
	last    int64      // the revision of the latest change
	changes []kv.Entry // a ring, once it is full
	oldest  int
}

// begin forgets everything up to a revision.
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

// after returns the changes of a room after a revision; known is false where not all of them are here, and for a
// revision that has not been heard of.
func (r *recent) after(room string, revision int64) (list []kv.Entry, known bool) {
	if revision < r.since || revision > r.last {
		return nil, false
	}
	for i := range r.changes {
		e := r.changes[(r.oldest+i)%len(r.changes)]
		if e.Modified > revision && strings.TrimPrefix(e.Key, prefix) == room {
			list = append(list, e)
		}
	}
	return list, true
}
