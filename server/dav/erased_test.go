package dav

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
)

// An administrator deletes a document just before the transaction that stores properties of it. The properties do not stay for
// another document of this name.
func TestADeletedDocumentGetsNoProperties(t *testing.T) {
	s := newInterruptedStore(t)
	h := s.handler(s.uninterrupted, s.interrupted)
	n := node{place: place{"c"}, kind: file}
	g := s.right(h, n.place)
	write(t, g, "text")

	s.before = func() { require.NoError(t, h.Contents.Erase(context.Background(), n.id(), nil)) }
	require.ErrorIs(t, h.patchUnder(t.Context(), g, n, []update{{property: red}}), content.ErrNotFound)
	props, _, err := h.propsOf(t.Context(), n)
	require.NoError(t, err)
	assert.Empty(t, props)
}
