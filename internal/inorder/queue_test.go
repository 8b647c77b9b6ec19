package inorder_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/inorder"
)

func TestCallsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := inorder.New()
		var called []int
		for i := range 3 {
			q.Push(func() {
				called = append(called, i)
				q.Push(func() { called = append(called, 10+i) })
			})
		}
		assert.Empty(t, called, "nothing runs before Run")
		go q.Run()
		require.NoError(t, inorder.Flush(t.Context(), q.Mark()))
		require.NoError(t, inorder.Flush(t.Context(), q.Mark()), "Flush waits for calls that a call has pushed")
		assert.Equal(t, []int{0, 1, 2, 10, 11, 12}, called)
		q.Close()
	})
}

func TestCloseCallsWhatWasPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, goOn, called := inorder.New(), make(chan struct{}), 0
		for range 3 {
			q.Push(func() { <-goOn; called++ })
		}
		ended := make(chan struct{})
		go func() { q.Run(); close(ended) }()
		q.Close()
		q.Close()
		close(goOn)
		<-ended
		assert.Equal(t, 3, called)
		assert.False(t, q.Push(func() { t.Error("called after the end") }))
		assert.NoError(t, inorder.Flush(t.Context(), q.Mark()), "there is nothing to wait for")
	})
}

func TestFlushReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, goOn := inorder.New(), make(chan struct{})
		q.Push(func() { <-goOn })
		go q.Run()
		why := errors.New("why")
		ctx, end := context.WithCancelCause(t.Context())
		end(why)
		assert.ErrorIs(t, inorder.Flush(ctx, q.Mark()), why)
		close(goOn)
		q.Close()
	})
}

func TestGuardRecovers(t *testing.T) {
	for recovered, text := range map[any]string{
		"text":              "text",
		errors.New("error"): "error",
		3:                   "a value that is neither an error nor a string",
	} {
		inorder.Guard("event", func() { panic(recovered) })
		assert.Equal(t, text, inorder.PanicText(recovered))
	}
}
