package dav

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/content"
)

// A program moves a document and sets a property of it in parallel, under one lock. The property is stored while the move has
// read the properties and not moved yet. It moves too.
func TestAPropertySetDuringAMoveMovesToo(t *testing.T) {
	s := newInterruptedStore(t)
	moving, setting := s.handler(s.interrupted, s.uninterrupted), s.handler(s.uninterrupted, s.uninterrupted)
	from, to := node{place: place{"from"}, kind: file}, node{place: place{"to"}, kind: file}
	write(t, s.right(setting, from.place), "text")
	patch := func() error {
		return setting.patchUnder(t.Context(), s.right(setting, from.place), from, []update{{property: red}})
	}

	s.before = func() { require.NoError(t, patch()) }
	source := s.right(moving, from.place)
	x := &transfer{call: source.call, from: from, to: to, move: true, source: source, target: s.right(moving, to.place)}
	require.NoError(t, moving.moveNode(x, from, to, nil))
	props, _, err := moving.propsOf(t.Context(), to)
	require.NoError(t, err)
	assert.Equal(t, []property{red}, props)
	require.ErrorIs(t, patch(), content.ErrNotFound, "the document has gone")
}
