package events

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv"
)

func TestRecentChangesHaveNoGap(t *testing.T) {
	var r recent
	r.begin(10)
	revisions := func(document string, after int64) (list []int64, known bool) {
		entries, known := r.after(document, after)
		for _, e := range entries {
			list = append(list, e.Modified)
		}
		return list, known
	}
	_, known := revisions("r", 9)
	assert.False(t, known, "before it began")
	list, known := revisions("r", 10)
	assert.True(t, known)
	assert.Empty(t, list)
	_, known = revisions("r", 11)
	assert.False(t, known, "the hub has no event of the document yet")

	last := int64(10)
	for last < 10+3*recentLength {
		last += 2
		r.add(kv.Entry{Key: prefix + "r", Modified: last})
		r.add(kv.Entry{Key: prefix + "rr", Modified: last}) // of the same revision, in a document whose name begins alike
		first := last - recentLength + 2                    // two changes every two revisions
		for _, after := range []int64{last, last - 1, last - 2, first} {
			list, known := revisions("r", after)
			if after < 10 {
				assert.False(t, known)
				continue
			}
			assert.True(t, known)
			assert.Len(t, list, int(last-after+1)/2)
			if len(list) > 0 {
				assert.Equal(t, []int64{(after + 2) / 2 * 2, last}, []int64{list[0], list[len(list)-1]})
			}
		}
		_, known = revisions("r", last-recentLength-1)
		assert.False(t, known, "forgotten")
	}
	r.begin(last + 100)
	_, known = revisions("r", last)
	assert.False(t, known)
}
