package locktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// RunRecords runs the suite that all Records must pass which keep them. open returns a function that makes clients of a place
// without records; all clients of one test share the place.
func RunRecords(t *testing.T, open func(t *testing.T) func() lock.Records) {
	for name, test := range map[string]func(*testing.T, func() lock.Records){
		"a client reads the record of another": testRecordRead,
		"tokens rise":                          testRecordTokens,
		"a renewal brings no record back":      testRecordRenewedTooLate,
		"a record of another lease stays":      testRecordOfAnother,
		"a stolen record is not renewed":       testRecordStolen,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func newRecord() lock.Record {
	now := time.Now().Truncate(time.Millisecond)
	return lock.Record{Resource: "holdfast:project", LeaseID: lock.NewID(), OwnerID: lock.NewID(), OwnerName: "Ann", AcquiredAt: now, ExpiresAt: now.Add(time.Minute), TTL: time.Minute}
}

// claim writes a record, and returns it with its token.
func claim(t *testing.T, c lock.Records, r lock.Record, stolen bool) lock.Record {
	t.Helper()
	token, err := c.Claim(t.Context(), r, stolen)
	require.NoError(t, err)
	require.Greater(t, token, r.Token)
	r.Token = token
	return r
}

// present asserts which lease has the record; "" is none.
func present(t *testing.T, c lock.Records, leaseID string) lock.Record {
	t.Helper()
	r, ok, err := c.Read(t.Context(), newRecord().Resource)
	require.NoError(t, err)
	require.Equal(t, leaseID != "", ok)
	if ok {
		require.Equal(t, leaseID, r.LeaseID)
	}
	return r
}

func testRecordRead(t *testing.T, client func() lock.Records) {
	a, b := client(), client()
	present(t, b, "")
	r := claim(t, a, newRecord(), false)
	read := present(t, b, r.LeaseID)
	assert.Equal(t, r.Token, read.Token)
	assert.Equal(t, r.OwnerName, read.OwnerName)
	r.ExpiresAt = r.ExpiresAt.Add(time.Second)
	require.NoError(t, a.Renew(t.Context(), r))
	assert.WithinDuration(t, r.ExpiresAt, present(t, b, r.LeaseID).ExpiresAt, time.Millisecond)
	require.NoError(t, a.Remove(t.Context(), r))
	present(t, b, "")
}

func testRecordTokens(t *testing.T, client func() lock.Records) {
	a, b := client(), client()
	last := int64(0)
	for i := range 6 {
		c := []lock.Records{a, b}[i%2]
		r := newRecord()
		if i == 3 {
			r.Token = last + 1000 // the storage knows a later token
		}
		r = claim(t, c, r, false)
		assert.Greater(t, r.Token, last)
		again := claim(t, c, r, false) // the answer to the first attempt was lost
		assert.Greater(t, again.Token, r.Token)
		last = again.Token
		require.NoError(t, c.Remove(t.Context(), again))
		present(t, b, "")
	}
}

func testRecordRenewedTooLate(t *testing.T, client func() lock.Records) {
	a, b := client(), client()
	r := newRecord()
	require.ErrorIs(t, a.Renew(t.Context(), r), lock.ErrLost, "never claimed")
	r = claim(t, a, r, false)
	require.NoError(t, a.Remove(t.Context(), r))
	require.NoError(t, a.Remove(t.Context(), r), "twice")
	require.ErrorIs(t, a.Renew(t.Context(), r), lock.ErrLost)
	present(t, b, "")
}

func testRecordOfAnother(t *testing.T, client func() lock.Records) {
	a, b := client(), client()
	r := claim(t, a, newRecord(), false)
	require.NoError(t, b.Remove(t.Context(), newRecord()))
	present(t, b, r.LeaseID)
	require.NoError(t, a.Remove(t.Context(), r))
}

func testRecordStolen(t *testing.T, client func() lock.Records) {
	a, b := client(), client()
	r := claim(t, a, newRecord(), false)
	stealer := claim(t, b, newRecord(), true)
	assert.Greater(t, stealer.Token, r.Token)
	require.ErrorIs(t, a.Renew(t.Context(), r), lock.ErrLost)
	require.NoError(t, a.Remove(t.Context(), r))
	present(t, a, stealer.LeaseID)
	require.NoError(t, b.Remove(t.Context(), stealer))
}
