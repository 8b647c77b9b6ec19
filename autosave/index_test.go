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

// nasty are texts that could end a string of the index early, or could have two spellings.
var nasty = []string{
	"Ann", `"},{"id":"9-9"`, `],"crc32":"00000000"}`, "\\", `\"`, `\u0022`, "line\nfeed\r\ttab\x00\x1f\x7f", "日本語 🦀 e\u0301\u202e\u2028", "</script>", "'",
}

func some(n int) []Generation {
	var all []Generation
	for i := range n {
		g := begun(int64(1_700_000_000_000+i), int64(i/2+1))
		g.SavedAt = g.SavedAt.Add(time.Duration(i) * time.Millisecond)
		g.Bytes, g.SHA256, g.Current = int64(i*1000), strings.Repeat("0123456789abcdef", 4), i == n-1
		if i%2 == 1 {
			g.Draft, g.Number = "6f1c3a52-0000-4000-8000-000000000001", int64(i)
		}
		if i%3 == 1 {
			g.OwnerName, g.Name = nasty[i%len(nasty)], nasty[(i+1)%len(nasty)]
		}
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
				ID                             string
				Bytes, SavedAt, Number         int64
				SHA256, Draft, OwnerName, Name string
			}
			CRC32 string
		}
		require.NoError(t, json.Unmarshal(text, &parsed), "it is JSON for everybody else")
		require.Len(t, parsed.Generations, n)
		for i, g := range got {
			p := parsed.Generations[i]
			assert.Equal(t, []any{g.ID, g.SavedAt.UnixMilli(), g.Bytes, g.SHA256, g.Draft, g.Number, g.OwnerName, g.Name},
				[]any{p.ID, p.SavedAt, p.Bytes, p.SHA256, p.Draft, p.Number, p.OwnerName, p.Name})
		}
	}
}

// The names of people and of pins are text that somebody else chooses.
func TestIndexTextReadsBack(t *testing.T) {
	for _, text := range nasty {
		all := some(3)
		all[0].Name, all[1].OwnerName, all[2].Draft = text, text, text
		encoded := encodeIndex(all)
		got, err := decodeIndex(encoded)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, all, got)
		assert.True(t, json.Valid(encoded), "%s", encoded)
	}
}

// A commit may say what no index can spell. It is stored in a form that reads back.
func TestIndexReplacesInvalidText(t *testing.T) {
	all := some(1)
	all[0].describe(Commit{Draft: "\xff\xfe", OwnerName: "A\xc0\x80B", Number: -1})
	got, err := decodeIndex(encodeIndex(all))
	require.NoError(t, err)
	assert.Equal(t, all, got)
	assert.Equal(t, "A\ufffdB", got[0].OwnerName)
}

// A browser may have an index of an older edition.
func TestIndexOfOlderFormats(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	old := func(format, fields string) []byte {
		return reseal(`{"format":` + format + `,"generations":[{"id":"1700000000000-3"` + fields + `,"bytes":5,"sha256":"` + sum + `"}`)
	}
	want := begun(1_700_000_000_000, 3)
	want.Bytes, want.SHA256, want.Current = 5, sum, true
	got, err := decodeIndex(old("1", ""))
	require.NoError(t, err)
	assert.Equal(t, []Generation{want}, got)

	want.SavedAt = want.SavedAt.Add(7 * time.Millisecond)
	got, err = decodeIndex(old("2", `,"savedAt":1700000000007`))
	require.NoError(t, err)
	assert.Equal(t, []Generation{want}, got)

	for _, wrong := range [][]byte{
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum[1:] + `"}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum[1:] + `G"}`),
		reseal(`{"format":3,"generations":[{"id":"1-","savedAt":1,"bytes":5,"sha256":"` + sum + `"}`),
		old("0", ""), old("4", `,"savedAt":1700000000007`), old("1", `,"savedAt":1700000000007`), old("2", ""), old("02", ""), old("", ""), old("-1", ""),
		reseal(`{"format":2,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","draft":"d"}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","draft":""}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","number":0}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","name":"\u0041"}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","name":"\n"}`),
		reseal(`{"format":3,"generations":[{"id":"1-3","savedAt":1,"bytes":5,"sha256":"` + sum + `","name":"a","ownerName":"b"}`),
		reseal("{\"format\":3,\"generations\":[{\"id\":\"1-3\",\"savedAt\":1,\"bytes\":5,\"sha256\":\"" + sum + "\",\"name\":\"\xff\"}"),
	} {
		_, err := decodeIndex(wrong)
		require.Error(t, err, "%s", wrong)
	}
}

func TestTornIndexIsDetected(t *testing.T) {
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

// The encoder writes a decoded index in the same way again: there is one spelling.
func FuzzIndex(f *testing.F) {
	for n := range 4 {
		f.Add(encodeIndex(some(n)))
	}
	f.Add([]byte(`{"format":1,"generations":[{"id":"01-1","bytes":1,"sha256":""}],"crc32":"00000000"}`))
	f.Add(spellIndex(2, some(2)))
	f.Fuzz(func(t *testing.T, text []byte) {
		body, _, _ := strings.Cut(string(text), indexCheck)
		for _, text := range [][]byte{text, reseal(body)} { // under the right checksum too
			generations, err := decodeIndex(text)
			if err != nil {
				continue
			}
			format, _, _ := strings.Cut(strings.TrimPrefix(string(text), indexHead), ",")
			n, _ := parseNumber(format)
			assert.Equal(t, string(text), string(spellIndex(n, generations)))
			again, err := decodeIndex(encodeIndex(generations))
			require.NoError(t, err, "in the newest format")
			assert.Equal(t, generations, again)
			assert.True(t, json.Valid(text), "%s", text)
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

func TestErrorsHaveTheirCodes(t *testing.T) {
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
