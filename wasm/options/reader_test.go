package options

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

func of(t *testing.T, text string) *Reader {
	r, err := Read(text)
	require.NoError(t, err)
	return r
}

func TestReadNeedsAnObject(t *testing.T) {
	for _, text := range []string{`[]`, `"a"`, `1`, `null`, `{`} {
		_, err := Read(text)
		assert.Error(t, err, text)
	}
	r := of(t, "")
	assert.Equal(t, lock.AcquireOptions{Path: []string{}}, r.Acquire(), "a call without options")
	assert.NoError(t, r.Err())
}

const (
	place = `"path":["a","b"],"paths":[["c"],[]],"slots":3,"leaseId":"l","mode":"shared"`
	times = `"ttlMs":5000,"heartbeatIntervalMs":0.5,"timeoutMs":0,` +
		`"backoff":{"initialDelayMs":100,"multiplier":2,"maxDelayMs":1000,"jitter":0,"maxRetries":0}`
	ways = `"preferredStrategy":"file-lock","ifAvailable":true,"steal":true`
)

var all = lock.AcquireOptions{
	Path: []string{"a", "b"}, Paths: [][]string{{"c"}, {}}, Slots: 3, LeaseID: "l", Mode: lock.Shared,
	TTL: 5 * time.Second, HeartbeatInterval: 500 * time.Microsecond, Timeout: lock.NoWait,
	Backoff:           lock.Backoff{InitialDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: time.Second, Jitter: lock.NoJitter, MaxRetries: lock.Unlimited},
	PreferredStrategy: lock.FileLock, IfAvailable: true, Steal: true,
}

func TestEveryOptionOfALockIsRead(t *testing.T) {
	r := of(t, "{"+place+","+times+","+ways+`,"releaseOnError":false}`)
	assert.Equal(t, lock.WithOptions{AcquireOptions: all, KeepOnError: true}, r.With())
	assert.NoError(t, r.Err())
	assert.False(t, of(t, "{}").With().KeepOnError)

	r = of(t, `{"name":"n","mode":"exclusive","ifAvailable":true,"steal":true,"asked":1732612345678.125}`)
	assert.Equal(t, lock.Request{Wants: []lock.Want{{Name: "n", Mode: lock.Exclusive}}, IfAvailable: true, Steal: true, Asked: 1732612345678125}, r.Request())
}

// A time limit allows as many retries as fit into it, unless the caller limits them too.
func TestATimeLimitAllowsAllRetries(t *testing.T) {
	for text, want := range map[string]int{
		`{}`:                         0, // the default of lock
		`{"backoff":{"jitter":0.1}}`: 0,
		`{"timeoutMs":30000}`:        lock.Unlimited,
		`{"timeoutMs":30000,"backoff":{"jitter":0.1}}`:    lock.Unlimited,
		`{"timeoutMs":30000,"backoff":{"maxRetries":3}}`:  3,
		`{"timeoutMs":600000,"backoff":{"maxRetries":0}}`: lock.Unlimited,
		`{"backoff":{"maxRetries":0}}`:                    lock.Unlimited,
	} {
		r := of(t, text)
		assert.Equal(t, want, r.Acquire().Backoff.MaxRetries, text)
		assert.NoError(t, r.Err(), text)
	}
}

func TestEveryOptionOfAnAutoSaveIsRead(t *testing.T) {
	r := of(t, `{"enabled":false,"standby":false,"debounceMs":100,"idleMs":2000,"shown":"g","lineage":"d","dirty":true,"maxGenerations":5,"maxBytes":1000,`+
		`"keep":"spread","path":["a"],"lock":{"path":["a"],"leaseId":"l","ttlMs":5000}}`)
	c := r.AutoSave()
	assert.NoError(t, r.Err())
	assert.Equal(t, autosave.Config{
		Disabled: true, NoStandby: true, Debounce: 100 * time.Millisecond, Idle: 2 * time.Second, Shown: "g", Lineage: "d", Dirty: true,
		Limits: autosave.Limits{MaxGenerations: 5, MaxBytes: 1000, Keep: autosave.KeepSpread},
		Lock:   lock.AcquireOptions{Path: []string{"a"}, TTL: 5 * time.Second},
	}, c, "each acquisition has an id of its own")
	r = of(t, `{"path":["a"],"lock":{"ttlMs":5000}}`)
	assert.Equal(t, []string{"a"}, r.AutoSave().Lock.Path, "the lock needs no path of its own")
	assert.NoError(t, r.Err())
	absent := of(t, "{}").AutoSave()
	assert.Equal(t, []bool{false, false, false}, []bool{absent.Disabled, absent.NoStandby, absent.Dirty})
}

// A refusal names the option and what it must be, whatever else is wrong.
func TestFaultNamesTheOption(t *testing.T) {
	for text, want := range map[string]string{
		`{"ttlMs":null}`:                          "ttlMs must be a finite number", // what JSON makes of NaN
		`{"ttlMs":"5"}`:                           "ttlMs must be a finite number",
		`{"ttlMs":-1}`:                            "ttlMs must not be negative",
		`{"ttlMs":0}`:                             "ttlMs must be positive",
		`{"slots":1.5}`:                           "slots must be a whole number",
		`{"mode":""}`:                             "mode must not be empty",
		`{"mode":1}`:                              "mode must be a string",
		`{"steal":"yes"}`:                         "steal must be a boolean",
		`{"path":"a"}`:                            "path must be an array",
		`{"path":["a",1]}`:                        "path must be an array of strings",
		`{"paths":{}}`:                            "paths must be an array",
		`{"paths":["a"]}`:                         "paths must be an array of arrays of strings",
		`{"paths":[[1]]}`:                         "paths must be an array of arrays of strings",
		`{"backoff":[]}`:                          "backoff must be an object",
		`{"backoff":{"jitter":true}}`:             "backoff.jitter must be a finite number",
		`{"backoff":{"maxRetries":0.5}}`:          "backoff.maxRetries must be a whole number",
		`{"lock":{"backoff":{"jitter":-1}}}`:      "lock.backoff.jitter must not be negative",
		`{"lock":{"path":["b"]},"path":["a"]}`:    "lock.path must be the same as path",
		`{"lock":{"slots":2}}`:                    "slots",
		`{"lock":null}`:                           "lock must be an object",
		`{"enabled":null}`:                        "enabled must be a boolean",
		`{"steal":1,"mode":"","enabled":"later"}`: "enabled must be a boolean",
	} {
		r := of(t, text)
		r.AutoSave()
		r.Acquire()
		assert.ErrorIs(t, r.Err(), lock.ErrInvalidArgument, text)
		assert.ErrorContains(t, r.Err(), want, text)
	}
}

func TestLongTimesAndLargeNumbersHaveABound(t *testing.T) {
	r := of(t, `{"ttlMs":1e+300,"slots":1e+300,"backoff":{"maxRetries":1e+300}}`)
	got := r.Acquire()
	assert.NoError(t, r.Err())
	assert.Equal(t, time.Duration(1e12)*time.Millisecond, got.TTL)
	assert.Equal(t, 1<<53, got.Slots)
	assert.Equal(t, 1<<31-1, got.Backoff.MaxRetries)
}
