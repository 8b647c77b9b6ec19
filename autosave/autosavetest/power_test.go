package autosavetest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// moment is the list that a store had acknowledged after so many changes of its files.
type moment struct {
	steps int
	all   []autosave.Generation // the current one first
}

// session fences, commits, pins and collects over files that remember their flushes. It returns the acknowledged states
// and their times.
func session(t *testing.T, files *autosavetest.Power) (told []moment, contents map[string]string) {
	contents = map[string]string{}
	at := time.UnixMilli(1_700_000_000_000)
	note := func(s autosave.Store, err error) {
		require.NoError(t, err)
		all, err := s.List(t.Context())
		require.NoError(t, err)
		told = append(told, moment{files.Steps(), all})
	}
	told = append(told, moment{})
	for token := int64(1); token <= 3; token++ {
		s := autosave.NewLayout(files, autosavetest.SHA256)
		note(s, s.Fence(t.Context(), token))
		for n := range 4 {
			at = at.Add(time.Second)
			text := strings.Repeat(fmt.Sprint(token, n, " "), 20)
			g, err := s.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(text), Token: token, SavedAt: at, Draft: fmt.Sprint("d", token), Number: int64(n + 1),
				Limits: autosave.Limits{MaxGenerations: 3}, Aside: n == 2,
				Committed: func(g autosave.Generation) { // no later change may lose this generation
					told = append(told, moment{files.Steps(), nil})
				}})
			contents[g.ID] = text
			note(s, err)
			told[len(told)-2].all = told[len(told)-1].all
			if n == 1 {
				_, err = s.Pin(t.Context(), token, g.ID, fmt.Sprint("pin ", token))
				note(s, err)
			}
			if n == 3 && token > 1 {
				_, err = s.Pin(t.Context(), token, told[0].all0(told), "")
				note(s, err)
			}
		}
	}
	return told, contents
}

// all0 returns the oldest pinned generation of the last moment.
func (moment) all0(told []moment) string {
	all := told[len(told)-1].all
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Name != "" {
			return all[i].ID
		}
	}
	return ""
}

// opens returns the fault of a storage after a loss of power; nothing if the storage has the last acknowledged state or
// the next one.
func opens(disk *autosavetest.Disk, last, next moment, contents map[string]string) string {
	ctx := context.Background()
	for _, edits := range []bool{false, true} {
		s := disk.Page()
		if edits {
			if err := s.Fence(ctx, 99); err != nil {
				return fmt.Sprint("fence: ", err)
			}
		}
		all, err := s.List(ctx)
		if err != nil {
			return fmt.Sprint("list: ", err)
		}
		if wrong := follows(all, last, next, edits); wrong != "" {
			return wrong
		}
		for _, g := range all {
			text, err := s.Read(ctx, g.ID)
			if err != nil {
				return fmt.Sprint("read: ", err)
			}
			if want, known := contents[g.ID]; known && want != string(text) {
				return "another content in " + g.ID
			}
		}
		if !edits {
			continue
		}
		if _, err := s.Commit(ctx, autosave.Commit{Content: autosave.Bytes("after"), Token: 99, SavedAt: time.UnixMilli(1_700_000_100_000)}); err != nil {
			return fmt.Sprint("commit: ", err)
		}
		if text, err := s.Read(ctx, autosave.Current); err != nil || string(text) != "after" {
			return fmt.Sprint("the next commit: ", string(text), err)
		}
	}
	return ""
}

// follows returns the difference if a list is neither the last acknowledged one nor on its way to the next. A list may name no drafts until
// an editor has begun.
func follows(all []autosave.Generation, last, next moment, edits bool) string {
	has := map[string]autosave.Generation{}
	for _, g := range all {
		has[g.ID] = g
	}
	after := map[string]autosave.Generation{}
	for _, g := range next.all {
		after[g.ID] = g
	}
	for i, g := range last.all {
		there, ok := has[g.ID]
		then, stays := after[g.ID]
		switch {
		case !ok && stays:
			return "acknowledged and lost: " + g.ID
		case ok && there.Name != g.Name && (!stays || there.Name != then.Name):
			return "another name: " + there.Name
		case ok && (there.Draft != g.Draft && (edits || there.Draft != "") || there.Number != g.Number || there.SHA256 != g.SHA256):
			return "another generation under the same id"
		case i == 0 && (!ok || !there.Current) && (len(next.all) == 0 || all[0].ID != next.all[0].ID):
			return "another one is current"
		}
	}
	return ""
}

// most is the number of losses of power that are tried after one change: POWER_LOSSES in the environment, or a few.
func most() int {
	if n, err := strconv.Atoi(os.Getenv("POWER_LOSSES")); err == nil {
		return n
	}
	return 24
}

// cuts calls check with every way in which a power loss can leave the pending changes, or with many random ones if
// there are too many.
func cuts(parts []int, random *rand.Rand, check func(chosen []int)) {
	most := most()
	total := 1
	for _, n := range parts {
		total = min(total*n, most+1)
	}
	chosen := make([]int, len(parts))
	for i := range min(total, most) {
		left := i
		for j, n := range parts {
			switch {
			case total > most && i > 1:
				chosen[j] = random.IntN(n)
			case total > most:
				chosen[j] = i // first nothing of it, then all of it
			default:
				chosen[j], left = left%n, left/n
			}
		}
		check(chosen)
	}
}

// losses cuts the power after every change of a session, and counts the failures.
func losses(t *testing.T, files *autosavetest.Power) (tried int, wrong []string) {
	told, contents := session(t, files)
	random := rand.New(rand.NewPCG(1, 2))
	at := 0
	for steps := range files.Steps() + 1 {
		for at+1 < len(told) && told[at+1].steps <= steps {
			at++
		}
		next := told[min(at+1, len(told)-1)]
		cuts(files.Pending(steps), random, func(chosen []int) {
			tried++
			disk := files.Cut(steps, chosen)
			left := disk.String()
			if why := opens(disk, told[at], next, contents); why != "" {
				wrong = append(wrong, fmt.Sprintf("after %d changes, %v: %s (%s)", steps, chosen, why, left))
			}
		})
	}
	return tried, wrong
}

func TestPowerLoss(t *testing.T) {
	tried, wrong := losses(t, autosavetest.NewPower())
	t.Logf("%d losses of power", tried)
	assert.Greater(t, tried, 3000)
	for _, why := range wrong[:min(5, len(wrong))] {
		t.Error(why)
	}
	assert.Empty(t, len(wrong))
}

// A store that writes its index before its content is durable loses acknowledged content: the test finds that.
func TestPowerLossFindsHastyStore(t *testing.T) {
	files := autosavetest.NewPower()
	files.Hasty = true
	_, wrong := losses(t, files)
	assert.NotEmpty(t, wrong)
}
