package locks

import (
	"cmp"
	"slices"
	"sort"
)

// byToken contains the leases in the order of their tokens. Adding, removing and finding are cheap for any number of
// leases: a removed lease leaves a gap until half of the list are gaps.
type byToken struct {
	list    []*held
	gaps    int
	loading bool // the list is sorted at the end
}

func (o *byToken) loaded() {
	o.loading = false
	slices.SortFunc(o.list, func(a, b *held) int { return cmp.Compare(a.token, b.token) })
}

// add inserts a lease, which nearly always has the greatest token.
func (o *byToken) add(h *held) {
	o.list = append(o.list, h)
	for i := len(o.list) - 1; !o.loading && i > 0 && o.list[i-1].token > h.token; i-- {
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

// after returns leases with greater tokens from the next n list entries, and the last token that it looked at.
func (o *byToken) after(token int64, n int) (found []*held, last int64) {
	first := sort.Search(len(o.list), func(i int) bool { return o.list[i].token > token })
	for first < len(o.list) && len(found) == 0 {
		end := min(first+n, len(o.list))
		for _, h := range o.list[first:end] {
			if !h.gone {
				found = append(found, h)
			}
		}
		first, last = end, o.list[end-1].token
	}
	return found, last
}
