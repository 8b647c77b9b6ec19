package autosavetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// faulty is a Store in which some methods have a fault.
type faulty struct {
	autosave.Store
	fence  func(ctx context.Context, s autosave.Store, token int64) error
	commit func(ctx context.Context, s autosave.Store, c autosave.Commit) (autosave.Generation, error)
	list   func(all []autosave.Generation) []autosave.Generation
	read   func(content []byte, err error) ([]byte, error)
	pin    func(ctx context.Context, s autosave.Store, token int64, id, name string) (autosave.Generation, error)
}

func (f faulty) Pin(ctx context.Context, token int64, id, name string) (autosave.Generation, error) {
	if f.pin != nil {
		return f.pin(ctx, f.Store, token, id, name)
	}
	return f.Store.Pin(ctx, token, id, name)
}

func (f faulty) Fence(ctx context.Context, token int64) error {
	if f.fence != nil {
		return f.fence(ctx, f.Store, token)
	}
	return f.Store.Fence(ctx, token)
}

func (f faulty) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	if f.commit != nil {
		return f.commit(ctx, f.Store, c)
	}
	return f.Store.Commit(ctx, c)
}

func (f faulty) List(ctx context.Context) ([]autosave.Generation, error) {
	all, err := f.Store.List(ctx)
	if f.list != nil {
		all = f.list(all)
	}
	return all, err
}

func (f faulty) Read(ctx context.Context, id string) ([]byte, error) {
	content, err := f.Store.Read(ctx, id)
	if f.read != nil {
		return f.read(content, err)
	}
	return content, err
}

type store = autosave.Store

var highest atomic.Int64

// faults and the test of the suite that must fail for each.
var faults = map[string]struct {
	faulty
	caught string
}{
	"takes any token": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		c.Token = max(c.Token, highest.Load())
		highest.Store(c.Token)
		return s.Commit(ctx, c)
	}}, "a_lower_token_is_refused"},
	"has no fence": {faulty{fence: func(context.Context, store, int64) error { return nil }},
		"a_fence_refuses_before_anything_is_committed"},
	"keeps one too many": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		c.Limits.MaxGenerations++
		return s.Commit(ctx, c)
	}}, "more_generations_than_the_maximum_remove_the_oldest"},
	"does not count bytes": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		c.Limits.MaxBytes = 1 << 50
		return s.Commit(ctx, c)
	}}, "more_bytes_than_the_maximum_remove_the_oldest_generations"},
	"does not look at the checksum": {faulty{read: func(content []byte, err error) ([]byte, error) {
		if errors.Is(err, autosave.ErrCorrupted) {
			return []byte("something"), nil
		}
		return content, err
	}}, "damage_is_found_and_named"},
	"lists the oldest first": {faulty{list: func(all []autosave.Generation) []autosave.Generation {
		slices.Reverse(all)
		return all
	}}, "the_current_generation_comes_first"},
	"says saved when it is not": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		g, err := s.Commit(ctx, c)
		if errors.Is(err, autosave.ErrWriteFailed) {
			err = nil
		}
		return g, err
	}}, "killed_at_any_step_it_reads_back_whole"},
	"gives up after a failure": {func() faulty {
		var broken atomic.Bool
		return faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
			if broken.Load() {
				return autosave.Generation{}, autosave.ErrWriteFailed
			}
			g, err := s.Commit(ctx, c)
			broken.Store(errors.Is(err, autosave.ErrWriteFailed))
			return g, err
		}}
	}(), "failed_at_any_step_it_reads_back_whole"},
	"hides that it was emptied": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		g, err := s.Commit(ctx, c)
		if errors.Is(err, autosave.ErrEvicted) {
			return s.Commit(ctx, c)
		}
		return g, err
	}}, "an_emptied_storage_is_reported_and_filled_again"},
	"pins under any token": {faulty{pin: func(ctx context.Context, s store, token int64, id, name string) (autosave.Generation, error) {
		token = max(token, highest.Load())
		highest.Store(token)
		return s.Pin(ctx, token, id, name)
	}}, "a_pin_is_refused_like_a_commit"},
	"forgets pins": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		all, _ := s.List(ctx)
		for _, g := range all {
			_, _ = s.Pin(ctx, c.Token, g.ID, "")
		}
		return s.Commit(ctx, c)
	}}, "a_pinned_generation_is_kept"},
	"says pinned when it is not": {faulty{pin: func(ctx context.Context, s store, token int64, id, name string) (autosave.Generation, error) {
		g, err := s.Pin(ctx, token, id, name)
		if errors.Is(err, autosave.ErrWriteFailed) {
			err = nil
		}
		return g, err
	}}, "a_pin_fails_or_is_killed_at_any_step"},
	"keeps the latest": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		c.Limits.Keep = autosave.KeepLatest
		return s.Commit(ctx, c)
	}}, "the_generations_that_are_kept_are_spread_over_time"},
	"tells no phases": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		c.Progress = nil
		return s.Commit(ctx, c)
	}}, "phases_are_reported_in_order"},
	"takes text for bytes": {faulty{commit: func(ctx context.Context, s store, c autosave.Commit) (autosave.Generation, error) {
		bytes, _ := c.Content.Bytes()
		c.Content = autosave.Bytes(strings.ToValidUTF8(string(bytes), "?"))
		return s.Commit(ctx, c)
	}}, "any_content"},
}

const faultVariable = "HOLDFAST_PLANTED_FAULT"

// TestSuiteFindsFaults runs the suite in a process of its own for each fault. The suite must fail, in the test that is
// meant for the fault.
func TestSuiteFindsFaults(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("a browser runs no processes")
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			out, err := suite(name, "^TestPlantedFault$/^"+fault.caught+"$")
			require.Error(t, err, "the suite saw nothing:\n%s", out)
			assert.Contains(t, out, "--- FAIL: TestPlantedFault/"+fault.caught)
			assert.NotContains(t, out, "panic:")
		})
	}
}

func suite(fault, run string) (string, error) {
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", run)
	cmd.Env = append(os.Environ(), faultVariable+"="+fault)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPlantedFault is the suite over the Store that the environment names.
func TestPlantedFault(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		t.Skip("run by TestSuiteFindsFaults")
	}
	autosavetest.RunStore(t, func(*testing.T) autosavetest.Storage {
		storage := autosavetest.NewDisk().Storage()
		open := storage.Open
		storage.Open = func() autosavetest.Page {
			page := open()
			f := faults[name].faulty
			f.Store = page.Store
			page.Store = f
			return page
		}
		return storage
	})
}
