package locks

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// byToken contains the leases in the order of their tokens, and those with the same token in the order of their names.
// Adding, removing and finding are cheap for any number of leases: a removed lease leaves a gap until half of the list
// are gaps.
type byToken struct {
	list    []*held
	gaps    int
	loading bool // the list is sorted at the end
}

func (o *byToken) loaded() {
	o.loading = false
	slices.SortFunc(o.list, (*held).compare)
}

func (h *held) compare(other *held) int {
	return cmp.Or(cmp.Compare(h.token, other.token), strings.Compare(h.Lease, other.Lease))
}

// add inserts a lease, which nearly always has the greatest token.
func (o *byToken) add(h *held) {
	o.list = append(o.list, h)
	for i := len(o.list) - 1; !o.loading && i > 0 && o.list[i-1].compare(h) > 0; i-- {
		o.list[i-1], o.list[i] = o.list[i], o.list[i-1]
	}
}

func (o *byToken) remove(h *held) {
	h.gone = true
	if o.gaps++; o.gaps < 64 || o.gaps < len(o.list)/2 {
		return
	}
	kept := make([]*held, 0, len(o.list)-o.gaps)
	for _, h := range o.list {
		if !h.gone {
			kept = append(kept, h)
		}
	}
	o.list, o.gaps = kept, 0
}

// after returns leases after a position, from the next n list entries. It returns the position after these entries.
func (o *byToken) after(from cursor, n int) (found []*held, last cursor) {
	first := sort.Search(len(o.list), func(i int) bool { return from.before(o.list[i].token, o.list[i].Lease) })
	for first < len(o.list) && len(found) == 0 {
		end := min(first+n, len(o.list))
		for _, h := range o.list[first:end] {
			if !h.gone {
				found = append(found, h)
			}
		}
		first, last = end, cursor{place: o.list[end-1].token, lease: o.list[end-1].Lease}
	}
	return found, last
}
