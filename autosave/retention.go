package autosave

import (
	"cmp"
	"slices"
)

// Defaults of [Limits].
const (
	DefaultMaxGenerations = 20
	DefaultMaxBytes       = 50 << 20
)

// Keep decides which generations stay if there are more than the limits allow.
type Keep string

// The policies. [KeepSpread] is the default.
const (
	// KeepSpread keeps the newest generation and thins out the others, so that the distances between them grow with
	// their age: the same number covers weeks.
	KeepSpread Keep = "spread"
	// KeepLatest keeps the newest generations.
	KeepLatest Keep = "latest"
)

// Limits bound the history. The current generation stays, however large it is. A pinned generation stays too and does
// not count towards either limit: pins neither displace the rest of the history nor are displaced by it.
type Limits struct {
	MaxGenerations int   // default 20
	MaxBytes       int64 // default 50 MiB, over all generations that are not pinned
	Keep           Keep  // default KeepSpread
}

func (l Limits) withDefaults() Limits {
	l.MaxGenerations = cmp.Or(l.MaxGenerations, DefaultMaxGenerations)
	l.MaxBytes = cmp.Or(l.MaxBytes, DefaultMaxBytes)
	l.Keep = cmp.Or(l.Keep, KeepSpread)
	return l
}

// kept splits the generations, which are in the order of their commits, into those to remove and those to keep. The
// result depends on nothing else: every page decides alike.
func (l Limits) kept(all []Generation) (gone, stay []Generation) {
	l = l.withDefaults()
	thin := thinning{left: make([]candidate, 0, len(all))}
	for i, g := range all {
		thin.add(i, g, i == len(all)-1)
	}
	for thin.count > l.MaxGenerations || thin.bytes > l.MaxBytes {
		i := thin.first(l.Keep, thin.count <= l.MaxGenerations)
		if i < 0 {
			break
		}
		thin.remove(i)
	}
	stay = make([]Generation, 0, len(all))
	next := 0
	for i, g := range all {
		left := next < len(thin.left) && thin.left[next].at == i
		if left {
			next++
		}
		if left || g.Name != "" {
			stay = append(stay, g)
		} else {
			gone = append(gone, g)
		}
	}
	return gone, stay
}

// thinning chooses the next generation to remove.
//
// KeepSpread is the greedy form of logarithmic thinning, which backup programs do with fixed classes (restic forget
// --keep-hourly --keep-daily …, the grandfather-father-son and the Tower of Hanoi rotation). It removes the generation
// whose two neighbours have the most similar age: the gap after the removal is the smallest in proportion to its age.
// The ages of n generations thus approach a geometric series from the interval of saving to the age of the first one,
// whatever the rhythm of saving is, and the last generation before a pause stays long. The choice depends on ages in
// proportion to each other, so a long-term generation stays until its neighbours are as old in proportion.
type thinning struct {
	left  []candidate // in the order of their commits; the last one is the newest
	count int         // of those that are not pinned
	bytes int64       // of those too
}

// candidate is a generation that is not pinned, or the newest one.
type candidate struct {
	at    int // index among all generations
	saved int64
	bytes int64
}

// add adds a generation. A pinned generation is no candidate, but the newest counts even if pinned, because ages are
// measured from it.
func (t *thinning) add(i int, g Generation, newest bool) {
	if g.Name == "" || newest {
		t.left = append(t.left, candidate{i, g.SavedAt.UnixMilli(), g.Bytes})
	}
	if g.Name == "" {
		t.count++
		t.bytes += g.Bytes
	}
}

func (t *thinning) remove(i int) {
	t.count--
	t.bytes -= t.left[i].bytes
	t.left = append(t.left[:i], t.left[i+1:]...)
}

// first returns the generation to remove first, or -1 if only the newest is left. To make room, the worth of a
// generation is counted per byte.
func (t *thinning) first(keep Keep, room bool) int {
	newest := len(t.left) - 1
	switch {
	case newest < 1:
		return -1
	case keep == KeepLatest:
		return 0
	}
	ages := t.ages()
	least, found := 0.0, -1
	for i := range newest {
		worth := worth(ages, i)
		if room {
			worth /= float64(max(1, t.left[i].bytes))
		}
		if found < 0 || worth < least {
			least, found = worth, i
		}
	}
	return found
}

// worth is a generation's contribution to the spread, from 0 to 1. The first one is worth more, because nothing older
// represents it. The one before the newest is worth most: users go back to it, and a restore has backed it up.
func worth(ages []int64, i int) float64 {
	switch {
	case i == len(ages)-2:
		return 2
	case i == 0:
		return 1.5
	case ages[i-1] == 0:
		return 0
	}
	return 1 - float64(ages[i+1])/float64(ages[i-1])
}

// ages returns how much older than the newest generation each one is. Times that contradict the order of the commits
// come from a clock that was set. The longest series of times that contradict neither each other nor the newest is
// believed; any other generation gets the age of the believed one after it.
func (t *thinning) ages() []int64 {
	newest := len(t.left) - 1
	believed := t.believed()
	ages := make([]int64, len(t.left))
	last := newest
	for i := newest - 1; i >= 0; i-- {
		if believed[i] {
			last = i
		}
		ages[i] = t.left[newest].saved - t.left[last].saved
	}
	return ages
}

// believed returns which times belong to the longest series that never decreases and that
// ends with the newest. Of several equally long series, any may count.
func (t *thinning) believed() []bool {
	n := len(t.left)
	believed := make([]bool, n)
	if slices.IsSortedFunc(t.left, func(a, b candidate) int { return sign(a.saved - b.saved) }) {
		for i := range believed {
			believed[i] = true
		}
		return believed
	}
	length, next := make([]int, n), make([]int, n)
	for i := n - 1; i >= 0; i-- {
		length[i], next[i] = 1, -1
		for j := i + 1; j < n; j++ {
			fits := t.left[i].saved <= t.left[j].saved && length[j] > 0
			if fits && length[j] >= length[i] {
				length[i], next[i] = length[j]+1, j
			}
		}
		if i < n-1 && next[i] < 0 {
			length[i] = 0 // it is later than the newest, so no series begins with it
		}
	}
	best := n - 1
	for i := n - 1; i >= 0; i-- {
		if length[i] > length[best] {
			best = i
		}
	}
	for i := best; i >= 0; i = next[i] {
		believed[i] = true
	}
	return believed
}
