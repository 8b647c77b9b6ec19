package autosavetest_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

func TestFakeStore(t *testing.T) {
	autosavetest.RunStore(t, func(*testing.T) autosavetest.Storage { return autosavetest.NewDisk().Storage() })
}

func TestDrafts(t *testing.T) {
	autosavetest.RunDrafts(t, func(*testing.T) func() autosavetest.DraftPage { return autosavetest.NewDraftStorage().Page })
}
