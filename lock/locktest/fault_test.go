package locktest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// faults are Lockers with one fault each, and the test of the suite that must fail for it.
var faults = map[string]struct {
	request func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error)
	caught  string
}{
	"grants what is below to others": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			r.Wants = slices.DeleteFunc(slices.Clone(r.Wants), func(w lock.Want) bool { return w.Mode == lock.Shared })
			return l.Request(ctx, r)
		}, "every_pair_of_places"},
	"grants twice": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			for i := range r.Wants {
				r.Wants[i].Mode = lock.Shared
			}
			return l.Request(ctx, r)
		}, "an_exclusive_lock_keeps_others_out"},
	"forgets a waiter": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			g, err := l.Request(ctx, lock.Request{Wants: r.Wants, IfAvailable: !r.Steal, Steal: r.Steal})
			if err == nil || r.IfAvailable {
				return g, err
			}
			g, err = l.Request(ctx, r)
			if err == nil {
				_ = g.Release(ctx) // the grant arrives, but the caller is not notified
				<-ctx.Done()
				err = context.Cause(ctx)
			}
			return nil, err
		}, "an_exclusive_lock_keeps_others_out"},
	"leaks an aborted request": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			type answer struct {
				g   lock.Grant
				err error
			}
			c := make(chan answer, 1)
			go func() {
				g, err := l.Request(context.WithoutCancel(ctx), r)
				c <- answer{g, err}
			}()
			select {
			case a := <-c:
				return a.g, a.err
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}, "an_ended_context_leaves_the_queue"},
	"serves the last one first": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			r.Steal = r.Steal || !r.IfAvailable
			return l.Request(ctx, r)
		}, "waiters_are_granted_in_order"},
	"waits although ifAvailable": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			r.IfAvailable = false
			return l.Request(ctx, r)
		}, "ifAvailable_answers_instead_of_waiting"},
	"steal waits": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			r.Steal = false
			return l.Request(ctx, r)
		}, "a_steal_gets_the_lock,_and_the_former_holder_learns_of_it"},
	"takes the first of several": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			r.Wants = r.Wants[:1]
			return l.Request(ctx, r)
		}, "several_names_are_all_or_nothing"},
	"has lost its mode": {
		func(ctx context.Context, l *locktest.Locker, r lock.Request) (lock.Grant, error) {
			for i := range r.Wants {
				r.Wants[i].Mode = lock.Exclusive
			}
			return l.Request(ctx, r)
		}, "shared_locks_admit_each_other"},
}

// faulty is a Locker whose Request has a fault.
type faulty struct {
	*locktest.Locker
	request func(context.Context, *locktest.Locker, lock.Request) (lock.Grant, error)
}

func (f faulty) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	return f.request(ctx, f.Locker, r)
}

const faultVariable = "HOLDFAST_PLANTED_FAULT"

// TestSuiteFindsFaults runs the suite in a process of its own for each fault. The suite must fail, in the test that is
// meant for the fault.
func TestSuiteFindsFaults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := suite(name, "^TestPlantedFault$/^"+fault.caught+"$")
			require.Error(t, err, "the suite saw nothing:\n%s", out)
			assert.Contains(t, out, "--- FAIL: TestPlantedFault/"+fault.caught)
			assert.NotContains(t, out, "panic:")
		})
	}
	t.Run("none", func(t *testing.T) {
		out, err := suite("none", "^TestPlantedFault$")
		require.NoError(t, err, out)
		assert.Contains(t, out, "--- PASS: TestPlantedFault/")
	})
}

func suite(fault, run string) (string, error) {
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", run)
	cmd.Env = append(os.Environ(), faultVariable+"="+fault)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestPlantedFault is the suite over the Locker that the environment names.
func TestPlantedFault(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		t.Skip("run by TestSuiteFindsFaults")
	}
	patience := 300 * time.Millisecond // a planted fault lets promises of the suite wait until it is over
	if name == "none" {
		patience = time.Minute
	}
	locktest.SetPatience(t, patience)
	open := func(*testing.T) func() lock.Locker {
		space := locktest.NewSpace()
		return func() lock.Locker {
			l := space.Client(lock.NewID())
			if name == "none" {
				return l
			}
			return faulty{l, faults[name].request}
		}
	}
	locktest.RunLocker(t, open)
	locktest.RunTree(t, open)
}
