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
func TestObject(t *testing.T) {
	texts := []string{"", `a "quoted" \ back/slash`, "line\nbreak\ttab\x00\x1f\x7f", "日本語 🔒 \u2028\u2029", `{"not": "an object"}`}
	var o jsbridge.Object
	for _, s := range texts {
		o.Text(s, s)
	}
	o.Optional("unknown", "")
	o.Optional("known", "yes")
	o.Flag("flag", true)
	o.Whole("whole", -3)
	o.Whole("long", 1<<53)
	for name, d := range map[string]time.Duration{"half": 500 * time.Microsecond, "small": 1, "before": -1500050 * time.Nanosecond, "second": time.Second} {
		o.Duration(name, d)
	}
	o.Moment("never", time.Time{})
	o.Moment("moment", time.UnixMilli(946684800001))
	o.Add("empty", new(jsbridge.Object).JSON())
	o.Add("none", jsbridge.Texts(nil))
	o.Add("paths", jsbridge.Paths([][]string{{"a", "b\"c"}, {}}))
	parsed := must(t)(o.JSON().Value())
	for _, s := range texts {
		assert.Equal(t, s, text(t, must(t)(parsed.Get(s))))
	}
	assertFields(t, parsed, map[string]string{"known": `"yes"`, "flag": "true", "whole": "-3", "long": "9007199254740992", "half": "0.5", "small": "0.000001", "before": "-1.50005",
		"second": "1000", "moment": "946684800001", "empty": "{}", "none": "[]", "paths": `[["a","b\"c"],[]]`})
	for _, name := range []string{"unknown", "never"} {
		assert.True(t, must(t)(parsed.Get(name)).IsUndefined(), name)
	}
}

// assertFields compares fields in the engine's own spelling.
func assertFields(t *testing.T, object safejs.Value, want map[string]string) {
	t.Helper()
	for name, spelled := range want {
		field := must(t)(object.Get(name))
		assert.Equal(t, spelled, text(t, must(t)(must(t)(safejs.Global().Get("JSON")).Call("stringify", field))), name)
	}
}

func TestFieldsOfARequest(t *testing.T) {
	parsed := must(t)(jsbridge.JSON(map[string]any{"text": "a", "yes": true, "int": 1, "long": int64(2), "list": []int64{3, 4}, "none": []int64{}, "paths": [][]string{{"p"}}, "other": 1.5}).Value())
	assertFields(t, parsed, map[string]string{"text": `"a"`, "yes": "true", "int": "1", "long": "2", "list": "[3,4]", "none": "[]", "paths": `[["p"]]`, "other": "null"})
	assert.Equal(t, jsbridge.Text("{}"), jsbridge.JSON(map[string]any{}))
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
		return jsbridge.Texts([]string{"x"}), nil
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
