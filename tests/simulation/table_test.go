package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// unfaulted are the records of a simulated origin whose storage never fails.
type unfaulted struct {
	client string
	table  *leaseTable
}

func (u unfaulted) Claim(_ context.Context, r lock.Record, stolen bool) (int64, error) {
	return u.table.claim(u.client, r, time.Now(), stolen), nil
}

func (u unfaulted) Renew(_ context.Context, r lock.Record) error { return u.table.renew(u.client, r) }

func (u unfaulted) Read(context.Context, string) (lock.Record, bool, error) {
	r, ok := u.table.read()
	return r, ok, nil
}

func (u unfaulted) Remove(_ context.Context, r lock.Record) error {
	u.table.remove(u.client, r.LeaseID)
	return nil
}

// The simulated records keep the promises of the real file.
func TestSimulatedRecords(t *testing.T) {
	locktest.RunRecords(t, func(*testing.T) func() lock.Records {
		table := &leaseTable{}
		return func() lock.Records { return unfaulted{lock.NewID(), table} }
	})
}
