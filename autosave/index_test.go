package autosave

import (
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func some(n int) []Generation {
	var all []Generation
	for i := range n {
		g := begun(int64(1_700_000_000_000+i), int64(i/2+1))
		g.SavedAt = g.SavedAt.Add(time.Duration(i) * time.Millisecond)
		g.Bytes, g.SHA256, g.Current = int64(i*1000), strings.Repeat("0123456789abcdef", 4), i == n-1
		all = append(all, g)
	}
	return all
}

func TestIndexReadsBack(t *testing.T) {
	for n := range 25 {
		text := encodeIndex(some(n))
		got, err := decodeIndex(text)
		require.NoError(t, err)
		assert.Equal(t, some(n), got)
		var parsed struct {
			Format      int
			Generations []struct {
				ID     string
				Bytes  int64
				SHA256 string
			}
			CRC32 string
		}
		require.NoError(t, json.Unmarshal(text, &parsed), "it is JSON for everybody else")
		assert.Len(t, parsed.Generations, n)
	}
}

func TestIndexKnowsThatItIsTorn(t *testing.T) {
	text := encodeIndex(some(3))
	for n := range text {
		_, err := decodeIndex(text[:n])
		require.Error(t, err, "cut off after %d bytes", n)
		zeros := slices.Concat(text[:n], make([]byte, len(text)-n))
		_, err = decodeIndex(zeros)
		require.Error(t, err, "zeros after %d bytes", n)
		for bit := range 8 {
			damaged := slices.Clone(text)
			damaged[n] ^= 1 << bit
			_, err = decodeIndex(damaged)
			require.Error(t, err, "bit %d of byte %d", bit, n)
		}
	}
	_, err := decodeIndex(append(slices.Clone(text), ' '))
	require.Error(t, err)
}

// What is read is written the same way again: there is one spelling.
func FuzzIndex(f *testing.F) {
	for n := range 4 {
		f.Add(encodeIndex(some(n)))
	}
	f.Add([]byte(`{"format":1,"generations":[{"id":"01-1","bytes":1,"sha256":""}],"crc32":"00000000"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		generations, err := decodeIndex(text)
		if err == nil {
			assert.Equal(t, string(text), string(encodeIndex(generations)))
		}
		// Under the right checksum too.
		body, _, _ := strings.Cut(string(text), indexCheck)
		if generations, err = decodeIndex(reseal(body)); err == nil {
			assert.Equal(t, body, strings.SplitN(string(encodeIndex(generations)), indexCheck, 2)[0])
		}
	})
}

func reseal(body string) []byte {
	return []byte(body + indexCheck + hex32(crc32.ChecksumIEEE([]byte(body))) + indexTail)
}

func TestIndexNames(t *testing.T) {
	for _, s := range []string{"1-0.json", "999999999999999999-12.json"} {
		n, ok := parseIndexName(s)
		require.True(t, ok)
		assert.Equal(t, s, n.String())
	}
	for _, s := range []string{"", "1-0", "1.json", "-1.json", "1-.json", "01-1.json", "1-1.json.tmp", "+1-1.json", "1-1-1.json", "1234567890123456789-1.json", "١-1.json"} {
		_, ok := parseIndexName(s)
		assert.False(t, ok, s)
	}
	assert.Positive(t, indexName{10, 0}.compare(indexName{9, 5}))
	assert.Negative(t, indexName{9, 9}.compare(indexName{9, 10}))
	assert.Zero(t, indexName{9, 9}.compare(indexName{9, 9}))
}

func TestLimits(t *testing.T) {
	all := some(30) // of 0, 1000, 2000, … bytes
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
		gone, stay := c.limits.kept(all)
		assert.Len(t, stay, c.stay, c.limits)
		assert.Equal(t, all, slices.Concat(gone, stay))
	}
}

func TestErrorsHaveTheirCode(t *testing.T) {
	targets := []*Error{ErrWriteFailed, ErrQuota, ErrEvicted, ErrReadFailed, ErrCorrupted, ErrStaleToken, ErrNotFound, ErrSnapshotFailed,
		ErrReadOnly, ErrDisabled, ErrDisposed, ErrHandoverRefused, ErrHandoverBusy, ErrHandoverNoAnswer}
	require.Len(t, targets, len(Codes()))
	for i, c := range Codes() {
		err := &Error{Code: c.Code, Detail: "d", Resource: "g"}
		for j, target := range targets {
			assert.Equal(t, i == j, err.Is(target), "%s against %s", c.Code, target.Code)
		}
		assert.Equal(t, c.Retryable, err.Retryable())
		assert.True(t, strings.HasPrefix(err.Error(), string(c.Code)))
	}
}
