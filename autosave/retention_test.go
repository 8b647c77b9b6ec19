package autosave

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.UnixMilli(1_700_000_000_000)

// at returns generations of 1000 bytes that were saved so many seconds after the epoch.
func at(seconds ...int64) (all []Generation) {
	for i, s := range seconds {
		all = append(all, Generation{ID: fmt.Sprint(i), SavedAt: epoch.Add(time.Duration(s) * time.Second), Bytes: 1000})
	}
	return all
}

func pinned(all []Generation, which ...int) []Generation {
	for _, i := range which {
		all[i].Name = "kept"
	}
	return all
}

func sized(all []Generation, bytes ...int64) []Generation {
	for i, n := range bytes {
		all[i].Bytes = n
	}
	return all
}

// seconds returns when the generations were saved.
func seconds(all []Generation) (s []int64) {
	for _, g := range all {
		s = append(s, int64(g.SavedAt.Sub(epoch)/time.Second))
	}
	return s
}

func TestLimits(t *testing.T) {
	all := some(30) // of 0, 1000, 2000, … bytes
	for i := range all {
		all[i].Name = ""
	}
	for _, c := range []struct {
		limits Limits
		stay   int
	}{
		{Limits{}, 20},
		{Limits{MaxGenerations: 1}, 1},
		{Limits{MaxGenerations: 100}, 30},
		{Limits{MaxBytes: 1}, 1},
		{Limits{MaxBytes: 29_000}, 1},
		{Limits{MaxBytes: 56_999}, 1},
		{Limits{MaxBytes: 57_000}, 2},
		{Limits{MaxGenerations: 3, MaxBytes: 1 << 40}, 3},
	} {
		c.limits.Keep = KeepLatest
		gone, stay := c.limits.kept(all)
		assert.Len(t, stay, c.stay, c.limits)
		assert.Equal(t, all, slices.Concat(gone, stay))
		c.limits.Keep = ""
		gone, stay = c.limits.kept(all)
		assert.Len(t, slices.Concat(gone, stay), 30)
		assert.Equal(t, all[29], stay[len(stay)-1], "the newest")
		_, again := c.limits.kept(stay)
		assert.Equal(t, stay, again, "no generation within the limits is removed")
	}
}

func TestRetention(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		all    []Generation
		stay   []int64
	}{
		"nothing":          {Limits{}, nil, nil},
		"one":              {Limits{MaxGenerations: 1, MaxBytes: 1}, at(0), []int64{0}},
		"of two the newer": {Limits{MaxGenerations: 1}, at(0, 1), []int64{1}},
		"of three the first goes last but for the two newest": {Limits{MaxGenerations: 2}, at(0, 8, 9), []int64{8, 9}},
		"the one between similar ages goes":                   {Limits{MaxGenerations: 4}, at(0, 50, 60, 98, 100), []int64{0, 60, 98, 100}},
		"the end of a session stays":                          {Limits{MaxGenerations: 4}, at(0, 2, 4, 6, 8, 86400), []int64{0, 4, 8, 86400}},
		"a day of typing, then another":                       {Limits{MaxGenerations: 5}, at(0, 2, 4, 6, 8, 86400, 86402, 86404), []int64{0, 8, 86400, 86402, 86404}},
		"the latest":                                          {Limits{MaxGenerations: 2, Keep: KeepLatest}, at(0, 50, 60, 99, 100), []int64{99, 100}},

		"too many bytes":                 {Limits{MaxBytes: 3000}, at(0, 50, 60, 98, 100), []int64{0, 98, 100}},
		"exactly the bytes":              {Limits{MaxBytes: 5000}, at(0, 50, 60, 98, 100), []int64{0, 50, 60, 98, 100}},
		"a large one goes first":         {Limits{MaxBytes: 5000}, sized(at(0, 50, 60, 98, 100), 9000), []int64{50, 60, 98, 100}},
		"a large one at the very count":  {Limits{MaxGenerations: 5, MaxBytes: 5000}, sized(at(0, 50, 60, 98, 100), 9000), []int64{50, 60, 98, 100}},
		"the newest stays however large": {Limits{MaxBytes: 5000}, sized(at(0, 50, 100), 1, 1, 9000), []int64{100}},
		"empty ones take no room":        {Limits{MaxBytes: 1500}, sized(at(0, 50, 100), 0, 1000, 1000), []int64{0, 100}},
		"bytes of the latest":            {Limits{MaxBytes: 2500, Keep: KeepLatest}, at(0, 50, 60, 98, 100), []int64{98, 100}},

		"pins stay beyond the count":      {Limits{MaxGenerations: 2}, pinned(at(0, 1, 2, 3, 4, 5), 0, 1, 2), []int64{0, 1, 2, 4, 5}},
		"pins stay beyond the bytes":      {Limits{MaxBytes: 1}, pinned(at(0, 1, 2, 3, 4, 5), 0, 2), []int64{0, 2, 5}},
		"pins take no room from others":   {Limits{MaxBytes: 2000}, pinned(sized(at(0, 1, 2, 3), 9000, 9000), 0, 1), []int64{0, 1, 2, 3}},
		"pins with the latest":            {Limits{MaxGenerations: 2, Keep: KeepLatest}, pinned(at(0, 1, 2, 3, 4, 5), 1, 4), []int64{1, 3, 4, 5}},
		"the newest is pinned":            {Limits{MaxGenerations: 2}, pinned(at(0, 1, 2, 3), 3), []int64{0, 2, 3}},
		"all are pinned":                  {Limits{MaxGenerations: 1, MaxBytes: 1}, pinned(at(0, 1, 2), 0, 1, 2), []int64{0, 1, 2}},
		"a large newest one is pinned":    {Limits{MaxBytes: 2000}, pinned(sized(at(0, 1, 2), 1000, 1000, 9000), 2), []int64{0, 1, 2}},
		"all but the newest are pinned":   {Limits{MaxGenerations: 1, MaxBytes: 1}, pinned(at(0, 1, 2), 0, 1), []int64{0, 1, 2}},
		"ages are those of the unpinned":  {Limits{MaxGenerations: 3}, pinned(at(0, 40, 50, 98, 100), 1), []int64{0, 40, 98, 100}},
		"two saved at once":               {Limits{MaxGenerations: 3}, at(0, 5, 10, 10), []int64{0, 10, 10}},
		"many saved at once":              {Limits{MaxGenerations: 5}, at(0, 5, 10, 10, 10, 10), []int64{0, 5, 10, 10, 10}},
		"a clock that was ahead for long": {Limits{MaxGenerations: 5}, at(100, 150, 160, 1e9, 1e9+1, 1e9+2, 198, 200), []int64{100, 160, 1e9, 198, 200}},
		"all saved at once":               {Limits{MaxGenerations: 2}, at(7, 7, 7, 7), []int64{7, 7}},
		"a clock that is set back":        {Limits{MaxGenerations: 4}, at(1000, 1050, 1060, 1100, 500), []int64{1000, 1060, 1100, 500}},
		"a moment in the past is ignored": {Limits{MaxGenerations: 4}, at(100, 150, 160, -1e9, 198, 200), []int64{100, 160, 198, 200}},
		"a moment in the future too":      {Limits{MaxGenerations: 4}, at(100, 150, 160, 1e9, 198, 200), []int64{100, 160, 198, 200}},
		"a clock that was wrong for long": {Limits{MaxGenerations: 4}, at(1e9, 1e9+1, 1e9+2, 0, 50, 60, 98, 100), []int64{1e9, 60, 98, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			gone, stay := c.limits.kept(c.all)
			assert.Equal(t, c.stay, seconds(stay))
			assert.Len(t, gone, len(c.all)-len(stay))
		})
	}
}

// A typist saves every two seconds. At any moment the generations reach from seconds to the
// first one, and no age is far from that of its neighbour.
func TestSpreadOfASteadyTypist(t *testing.T) {
	var all []Generation
	for n := range int64(24 * 1800) { // a day without a pause
		all = append(all, at(2*n)...)
		var gone []Generation
		gone, all = Limits{}.kept(all)
		require.LessOrEqual(t, len(gone), 1, "one comes, one goes")
		if n < 1800 || n%7 != 0 {
			continue
		}
		s := seconds(all)
		require.Len(t, s, 20)
		require.Equal(t, []int64{0, 2*n - 2, 2 * n}, []int64{s[0], s[18], s[19]}, "the first one and the two newest")
		for i := 1; i < 18; i++ {
			require.LessOrEqual(t, 2*n-s[i], 4*(2*n-s[i+1]), "at %d: %v", n, s)
			require.LessOrEqual(t, 2*n-s[0], 5*(2*n-s[1]), "at %d: %v", n, s)
		}
	}
}

// A typist saves every two seconds, two hours a day, for thirty days.
func TestSpreadOfAMonth(t *testing.T) {
	var all []Generation
	now, survivors := int64(0), map[int64]bool{}
	for day := range int64(30) {
		for n := range int64(2 * 1800) {
			now = day*24*3600 + 2*n
			all = append(all, at(now)...)
			_, all = Limits{}.kept(all)
		}
		if day == 20 {
			for _, s := range seconds(all) {
				survivors[s] = true
			}
		}
	}
	ages, still := []time.Duration{}, 0
	for _, s := range seconds(all) {
		ages = append(ages, time.Duration(now-s)*time.Second)
		if survivors[s] {
			still++
		}
	}
	t.Logf("ages after a month: %v", ages)
	require.Len(t, ages, 20)
	for _, c := range []struct {
		name     string
		from, to time.Duration
		least    int
	}{
		{"the last minute", 0, time.Minute, 5},
		{"the last hour", time.Minute, time.Hour, 4},
		{"the last day's work", time.Hour, 2 * time.Hour, 1},
		{"the last week", 12 * time.Hour, 7 * 24 * time.Hour, 2},
		{"the weeks before", 7 * 24 * time.Hour, 31 * 24 * time.Hour, 2},
	} {
		n := 0
		for _, age := range ages {
			if c.from <= age && age < c.to {
				n++
			}
		}
		assert.GreaterOrEqual(t, n, c.least, c.name)
	}
	assert.GreaterOrEqual(t, still, 2, "some generations that were kept after three weeks are kept at the end")
}

// A clock that was set leaves times that contradict the order of the commits, or the newest time.
func TestRetentionAfterAClockWasSet(t *testing.T) {
	for _, c := range []struct {
		saved []int64
		want  []bool
	}{
		{[]int64{1, 2, 2, 3}, []bool{true, true, true, true}},
		{[]int64{5, 100, 6, 7}, []bool{true, false, true, true}},
		{[]int64{1, 1, 9, 2}, []bool{true, true, false, true}},
		{[]int64{100, 101, 102, 5}, []bool{false, false, false, true}},
		{[]int64{1, 5, 2, 6}, []bool{true, true, false, true}},
	} {
		var thin thinning
		for i, g := range at(c.saved...) {
			thin.add(i, g, i == len(c.saved)-1)
		}
		assert.Equal(t, c.want, thin.believed(), "%v", c.saved)
	}
}
