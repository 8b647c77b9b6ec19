package lock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/lock"
)

func TestNames(t *testing.T) {
	assert.Equal(t, "p", lock.Name("p", nil))
	assert.Equal(t, "p//u1/a1/r1", lock.Name("p", lock.User("u1").Account("a1").Resource("r1")))
	assert.Equal(t, "p//a%2Fb%25/%00 ü", lock.Name("p", []string{"a/b%", "\x00 ü"}))
}

// No two paths share a name, whatever their components are. One name is a prefix of another if and only if one place
// contains the other.
func TestDifferentPathsHaveDifferentNames(t *testing.T) {
	component := rapid.StringOfN(rapid.RuneFrom([]rune("ab/%2F0\x00\\#")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(rapid.SliceOfN(component, 0, 3), 2, 2).Draw(t, "paths")
		a, b := paths[0], paths[1]
		nameA, nameB := lock.Name("p", a), lock.Name("p", b)
		assert.Equal(t, slices.Equal(a, b), nameA == nameB)
		contains := len(a) < len(b) && slices.Equal(a, b[:len(a)])
		beginning := len(nameA) < len(nameB) && (nameA == "p" || strings.HasPrefix(nameB, nameA+"/"))
		assert.Equal(t, contains, beginning)
	})
}

func TestPathsThatCannotBeLocked(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		const limit = 1024 // as holdfast.d.ts says; two of the bytes are slashes
		long := strings.Repeat("x", limit-1)
		for name, o := range map[string]lock.AcquireOptions{
			"path must not have an empty component":  {Path: []string{"u1", ""}},
			"path must be of valid text":             {Path: []string{"\xff"}},
			"path is too long":                       {Path: []string{long}},
			"paths must not have an empty component": {Paths: [][]string{{"a"}, {""}}},
			"paths must not be empty":                {Paths: [][]string{}},
			"path cannot be combined with paths":     {Path: []string{"a"}, Paths: [][]string{{"b"}}},
			"slots must be from 1 to 256":            {Slots: 257},
			"slots needs mode":                       {Slots: 2, Mode: lock.Shared},
			"slots cannot be combined with steal":    {Slots: 2, Steal: true},
			"slots cannot be combined with several":  {Slots: 2, Paths: [][]string{{"a"}, {"b"}}},
		} {
			_, err := a.Acquire(t.Context(), o)
			require.ErrorIs(t, err, lock.ErrInvalidArgument, name)
			assert.ErrorContains(t, err, name)
		}
		assert.Empty(t, a.seen())
		a.release(a.acquire(lock.AcquireOptions{Path: []string{long[:limit-2]}}))
		a.release(a.acquire(lock.AcquireOptions{Paths: [][]string{{}}}))
		w.mustBeFree()
	})
}
