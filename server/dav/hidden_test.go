package dav

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// A user asks for a collection with many documents that the user may not read. The request looks at a limited number of them.
func TestHiddenDocumentsCostLittle(t *testing.T) {
	defer func(n int) { maxHidden = n }(maxHidden)
	maxHidden = 1000
	m := memory.New()
	t.Cleanup(m.Close)
	reads := 0
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		if request == "range" {
			reads++
		}
		return nil, nil
	})
	t.Cleanup(func() { _ = store.Close() })
	for i := range 5000 {
		_, err := store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprintf("content/c~.%04d", i), []byte("{}"))}})
		require.NoError(t, err)
	}
	for rules, expected := range map[string]error{
		"anyone documents/other read":   nil,
		"anyone documents/c/more read":  errTooMany,
		"anyone documents/c/4999* read": errTooMany,
		"anyone documents/c/0900* read": nil,
	} {
		parsed, err := policy.Parse([]byte(rules))
		require.NoError(t, err)
		api, err := httpapi.New(httpapi.Config{Policy: func() *policy.Policy { return parsed }})
		require.NoError(t, err)
		h := New(Config{API: api, Contents: content.New(content.Config{KV: store}), Store: store})
		reads = 0
		is, err := h.isCollection(t.Context(), sessions.Session{}, place{"c"})
		assert.Equal(t, expected, err, rules)
		assert.Equal(t, rules == "anyone documents/c/0900* read", is, rules)
		assert.LessOrEqual(t, reads, 5, rules)
	}
}
