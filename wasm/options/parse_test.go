package options

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseReadsWhatStringifyWrites(t *testing.T) {
	for text, want := range map[string]any{
		`null`: nil, `true`: true, `false`: false,
		`""`: "", `"ä€😀"`: "ä€😀", `"\"\\\b\f\n\r\t\u0000\u001f/"`: "\"\\\b\f\n\r\t\x00\x1f/",
		`"a\ud800b"`: "a\ufffdb",
		`0`:          0.0, `-1`: -1.0, `9007199254740991`: float64(1<<53 - 1), `0.5`: 0.5, `12.25`: 12.25, `1e+21`: 1e21, `-2.5e-7`: -2.5e-7,
		`5e-324`: 0.0, `1e+22`: 1e22,
		`[]`: []any{}, `[1,[],"a"]`: []any{1.0, []any{}, "a"},
		`{}`: map[string]any{}, `{"a":{"b":[true]},"c":null}`: map[string]any{"a": map[string]any{"b": []any{true}}, "c": nil},
	} {
		got, err := parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestParseRefusesOtherTexts(t *testing.T) {
	for _, text := range []string{
		``, ` `, `nul`, `true1`, `1 `, `-`, `.5`, `1.`, `1e`, `1e+`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `'a'`, `[`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 ]`,
		`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `{"a" :1}`, `{"a":1}{`, `undefined`, `NaN`,
	} {
		_, err := parse(text)
		assert.Error(t, err, text)
	}
}

// A text that encoding/json writes is read alike here.
func FuzzParseAgreesWithTheLibrary(f *testing.F) {
	for _, seed := range []string{`{"path":["a","b"],"ttlMs":5000.5,"backoff":{"jitter":0}}`, `["\u2028","\"\\/"]`, `-1.25e-9`, `"\ud83d\ude00"`, `{"":[null,true]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parse(text) // nothing makes it panic
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		spelled, err := json.Marshal(v)
		require.NoError(t, err)
		got, err := parse(string(spelled))
		require.NoError(t, err, "%s", spelled)
		same(t, v, got)
	})
}

// same compares values; numbers may differ in their last digits.
func same(t *testing.T, want, got any) {
	switch want := want.(type) {
	case float64:
		require.InEpsilon(t, 1+math.Abs(want), 1+math.Abs(got.(float64)), 1e-14)
		require.Equal(t, math.Signbit(want), math.Signbit(got.(float64)))
	case []any:
		require.Len(t, got, len(want))
		for i := range want {
			same(t, want[i], got.([]any)[i])
		}
	case map[string]any:
		require.Len(t, got, len(want))
		for name := range want {
			same(t, want[name], got.(map[string]any)[name])
		}
	default:
		require.Equal(t, want, got)
	}
}
