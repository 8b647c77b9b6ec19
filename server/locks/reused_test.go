package locks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shareable are leases that do not exclude each other, so a key of the store keeps their tickets apart.
var shareable = map[string]Request{"shared": {Mode: Shared}, "slots": {Slots: 3}}

// within returns a context that ends later than any request takes that is answered at all.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// One ticket for two different places is the mistake of a client. It does not keep the server busy forever.
func TestTicketOfAnotherLockIsRefused(t *testing.T) {
	for name, kind := range shareable {
		t.Run(name, func(t *testing.T) {
			table, _, _ := opensFaulty(t)
			request := func(path string, kind Request) Request {
				kind.Paths, kind.Holder, kind.TTL, kind.Ticket = []Path{{path}}, Holder{ID: "ann"}, time.Minute, "x"
				return kind
			}
			first, err := table.Acquire(t.Context(), request("a", kind))
			require.NoError(t, err)
			_, err = table.Acquire(within(t), request("b", kind))
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			_, err = table.Acquire(t.Context(), request("c", Request{})) // an exclusive lease needs no such key
			require.NoError(t, err)
			again, err := table.Acquire(within(t), request("a", kind))
			require.NoError(t, err)
			assert.Equal(t, first.Token, again.Token, "the ticket still finds its own lease")
		})
	}
}

// A lease that has run out counts as gone, although nobody has swept it yet.
func TestTicketOfExpiredLease(t *testing.T) {
	for name, kind := range shareable {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, _ := opensFaultyInMemory(t)
				kind.Paths, kind.Holder, kind.TTL, kind.Ticket = []Path{{"a"}}, Holder{ID: "ann"}, time.Minute, "x"
				first, err := table.Acquire(t.Context(), kind)
				require.NoError(t, err)
				time.Sleep(time.Until(first.ExpiresAt))
				second, err := table.Acquire(within(t), kind)
				require.NoError(t, err)
				assert.Greater(t, second.Token, first.Token)
			})
		})
	}
}
