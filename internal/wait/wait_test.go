package wait_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/internal/wait"
)

var errEnd = errors.New("end")

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		assert.NoError(t, wait.For(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, time.Since(start))

		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { end(errEnd) })
		assert.ErrorIs(t, wait.For(ctx, time.Hour), errEnd)
		assert.Equal(t, time.Hour+time.Minute, time.Since(start))
		for range 100 { // both are ready: the end of the context takes precedence
			assert.ErrorIs(t, wait.For(ctx, 0), errEnd)
		}
	})
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		start := time.Now()
		group.Go(func() { time.Sleep(time.Hour) })
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { end(errEnd) })
		assert.ErrorIs(t, wait.Group(ctx, &group), errEnd)
		assert.Equal(t, time.Minute, time.Since(start))
		assert.NoError(t, wait.Group(t.Context(), &group))
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

func TestClosed(t *testing.T) {
	c := make(chan struct{})
	assert.False(t, wait.Closed(c))
	close(c)
	assert.True(t, wait.Closed(c))
	assert.True(t, wait.Closed(c))
}
