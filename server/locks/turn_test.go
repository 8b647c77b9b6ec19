package locks

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// mute is a store that does not answer when the table asks it for a lease: of its places in the queue, or of the stubs.
type mute struct {
	*kv.Store
	asked chan struct{}
	stubs bool
}

func (m *mute) wait(ctx context.Context) (*kv.Lease, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	return nil, kv.ErrUnavailable
}

func (m *mute) Lease(ctx context.Context, ttl time.Duration) (*kv.Lease, error) {
	if m.stubs {
		return m.Store.Lease(ctx, ttl)
	}
	return m.wait(ctx)
}

func (m *mute) Countdown(ctx context.Context, _ time.Duration) (*kv.Lease, error) { return m.wait(ctx) }

// The store does not answer to a request that waits for long. Another request, which waits for a moment, gets its answer in time.
func TestNoRequestWaitsForTheLongWaitOfAnother(t *testing.T) {
	for name, stubs := range map[string]bool{"a place in the queue": false, "a stub": true} {
		t.Run(name, func(t *testing.T) {
			store := &mute{Store: kvtest.Open(t), asked: make(chan struct{}, 2), stubs: stubs}
			table := openOver(t, store)
			leased(t, table, "ann", time.Hour)
			acquire := func(ctx context.Context, holder string, long time.Duration) chan error {
				outcome := make(chan error, 1)
				go func() {
					_, err := table.Acquire(ctx, Request{Paths: []Path{{"a"}}, Holder: Holder{ID: holder}, TTL: time.Hour, Wait: long})
					outcome <- err
				}()
				return outcome
			}
			ctx, leave := context.WithCancel(t.Context())
			patient := acquire(ctx, "bob", time.Hour)
			<-store.asked
			select {
			case err := <-acquire(t.Context(), "cleo", 10*time.Millisecond):
				assert.ErrorIs(t, err, ErrTimeout)
			case <-time.After(10 * time.Second):
				t.Error("it waits for the other one")
			}
			leave()
			require.Error(t, <-patient)
		})
	}
}
