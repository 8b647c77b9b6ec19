//go:build js && wasm

package jsbridge_test

import (
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// The engine's own JSON reads what Go wrote.
func TestJSON(t *testing.T) {
	texts := []string{"", `a "quoted" \ back/slash`, "line\nbreak\ttab\x00\x1f\x7f", "日本語 🔒 \u2028\u2029", `{"not": "an object"}`}
	object := map[string]any{"no": nil, "yes": true, "whole": -3, "long": int64(1) << 53, "half": 500 * time.Microsecond, "small": time.Nanosecond, "before": -1500050 * time.Nanosecond, "second": time.Second, "empty": map[string]any{}, "none": []any{},
		"paths": [][]string{{"a", "b\"c"}, {}}}
	for i, s := range texts {
		object[s] = []any{s, i}
	}
	parse := must(t)(must(t)(safejs.Global().Get("JSON")).Get("parse"))
	parsed := must(t)(parse.Invoke(string(jsbridge.JSON(object))))
	for i, s := range texts {
		pair := must(t)(parsed.Get(s))
		assert.Equal(t, s, text(t, must(t)(pair.Index(0))))
		n, err := must(t)(pair.Index(1)).Int()
		require.NoError(t, err)
		assert.Equal(t, i, n)
	}
	spelled := func(name string) string {
		value := must(t)(parsed.Get(name))
		return text(t, must(t)(must(t)(safejs.Global().Get("JSON")).Call("stringify", value)))
	}
	for name, want := range map[string]string{"no": "null", "yes": "true", "whole": "-3", "long": "9007199254740992", "half": "0.5", "small": "0.000001", "before": "-1.50005", "second": "1000", "empty": "{}", "none": "[]", "paths": `[["a","b\"c"],[]]`} {
		assert.Equal(t, want, spelled(name), name)
	}
}

// A Text arrives as the value that it encodes: as a result, and as the reason of a rejection.
func TestTextCrossesDecoded(t *testing.T) {
	noLeaks(t)
	exports := jsbridge.Exports{Reason: func(err error) any { return jsbridge.JSON(map[string]any{"why": err.Error()}) }}
	defer exports.Close()
	f, err := exports.Func(func(args []safejs.Value) (any, error) {
		if len(args) > 0 {
			return nil, assert.AnError
		}
		return jsbridge.JSON([]any{"x", 1}), nil
	})
	require.NoError(t, err)
	value, err := jsbridge.Await(t.Context(), must(t)(f.Invoke()))
	require.NoError(t, err)
	assert.Equal(t, "x", text(t, must(t)(value.Index(0))))
	_, err = jsbridge.Await(t.Context(), must(t)(f.Invoke(1)))
	var rejection jsbridge.Rejection
	require.ErrorAs(t, err, &rejection)
	assert.Equal(t, assert.AnError.Error(), text(t, must(t)(rejection.Reason.Get("why"))))
}
