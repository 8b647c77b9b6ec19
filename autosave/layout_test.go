package autosave_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

func commit(content string, token int64) autosave.Commit {
	return autosave.Commit{Content: autosave.Bytes(content), Token: token, SavedAt: time.Now(), Limits: autosave.Limits{MaxGenerations: 3, Keep: autosave.KeepLatest}}
}

// An editor is frozen before every single operation of its fence and its commits, while the successor does any number
// of its own; then it thaws. It never takes anything from its successor, and no acknowledged content is missing.
func TestEditorFrozenAtAnyOperation(t *testing.T) {
	for successes := range 4 { // commits of the successor while the other one is frozen
		for at := 0; ; at++ {
			more := false
			synctest.Test(t, func(t *testing.T) { more = frozenAt(t, at, successes) })
			if !more {
				require.Greater(t, at, 15, "there are more operations than that")
				break
			}
			if t.Failed() {
				t.Fatalf("frozen before operation %d, %d commits", at, successes)
			}
		}
	}
}

// fenceAndCommit commits three contents with the token 2, until one is refused because of a successor.
func fenceAndCommit(t *testing.T, old *autosave.Layout, acknowledged *[]string) {
	if old.Fence(t.Context(), 2) != nil {
		return
	}
	for n := range 3 {
		content := fmt.Sprint("old ", n)
		if _, err := old.Commit(t.Context(), commit(content, 2)); err != nil {
			assert.ErrorIs(t, err, autosave.ErrStaleToken)
			return
		}
		*acknowledged = append(*acknowledged, content)
	}
}

func frozenAt(t *testing.T, at, successes int) (reached bool) {
	disk := autosavetest.NewDisk()
	first := disk.Page()
	for n := range 3 {
		_, err := first.Commit(t.Context(), commit(fmt.Sprint("first ", n), 1))
		require.NoError(t, err)
	}
	files := disk.Client()
	ops, frozen, thaw := 0, make(chan struct{}), make(chan struct{})
	files.Before = func(string) {
		if ops == at {
			close(frozen)
			<-thaw
		}
		ops++
	}
	old := autosave.NewLayout(files, autosavetest.SHA256)
	acknowledged := []string{}
	var committing sync.WaitGroup
	committing.Go(func() { fenceAndCommit(t, old, &acknowledged) })
	synctest.Wait()
	select {
	case <-frozen:
		reached = true
	default:
	}
	successor := disk.Page()
	require.NoError(t, successor.Fence(t.Context(), 3))
	before := contents(t, successor)
	told := len(acknowledged)
	for n := range successes {
		_, err := successor.Commit(t.Context(), commit(fmt.Sprint("new ", n), 3))
		require.NoError(t, err)
	}
	close(thaw)
	committing.Wait()
	// Content that was acknowledged only after the thaw must have been seen by the fence.
	if len(acknowledged) > 0 {
		last := acknowledged[len(acknowledged)-1]
		require.Contains(t, before[:min(2, len(before))], last, "%d told before", told)
	}
	after := contents(t, disk.Page())
	if successes == 0 {
		require.Equal(t, before, after)
	} else {
		require.Equal(t, fmt.Sprint("new ", successes-1), after[0])
	}
	commitsLast(t, disk, successor)
	return reached
}

// commitsLast checks that the next commit of the successor is the latest of three generations, and leaves no other files.
func commitsLast(t *testing.T, disk *autosavetest.Disk, successor autosavetest.Page) {
	t.Helper()
	_, err := successor.Commit(t.Context(), commit("last", 3))
	require.NoError(t, err)
	after := contents(t, disk.Page())
	require.Equal(t, "last", after[0])
	require.Len(t, after, 3)
	assert.LessOrEqual(t, len(disk.Paths()), 3+3+2, "leftovers: %v", disk.Paths())
}

// contents reads all generations; each must be there.
func contents(t *testing.T, s autosave.Store) (all []string) {
	t.Helper()
	listed, err := s.List(t.Context())
	require.NoError(t, err)
	for _, g := range listed {
		content, err := s.Read(t.Context(), g.ID)
		require.NoError(t, err)
		all = append(all, string(content))
	}
	return all
}

// Bits rot in the index: the commit that only it knew is found again in the history.
func TestDamagedIndexIsRebuilt(t *testing.T) {
	disk := autosavetest.NewDisk()
	s := disk.Page()
	for n := range 3 {
		_, err := s.Commit(t.Context(), commit(fmt.Sprint(n), 1))
		require.NoError(t, err)
	}
	paths := disk.Paths()
	written := paths[:len(paths)-1] // the last is empty, for the next commit
	for i, index := range []string{written[len(written)-1], written[len(written)-2]} {
		disk.Corrupt(index)
		next := disk.Page()
		if i == 1 {
			_, err := next.List(t.Context())
			require.NoError(t, err, "the generation of the later editor is whole")
		}
		require.NoError(t, next.Fence(t.Context(), int64(i+2)))
		require.Equal(t, []string{"2", "1", "0"}, contents(t, next))
	}
	for _, path := range disk.Paths() {
		if path[0] == 'i' {
			disk.Corrupt(path)
		}
	}
	require.Equal(t, []string{"2", "1", "0"}, contents(t, s), "without any index")
	require.NoError(t, disk.Page().Fence(t.Context(), 9))
	require.Equal(t, []string{"2", "1", "0"}, contents(t, disk.Page()))
}

// Without any index, a generation that was put aside still comes before the current one, even if nothing else was saved.
func TestGenerationAsideIsNotCurrentInARebuiltIndex(t *testing.T) {
	disk := autosavetest.NewDisk()
	s := disk.Page()
	_, err := s.Commit(t.Context(), commit("current", 1))
	require.NoError(t, err)
	aside := commit("aside", 1)
	aside.Aside = true
	_, err = s.Commit(t.Context(), aside)
	require.NoError(t, err)
	require.Equal(t, []string{"current", "aside"}, contents(t, s))
	for _, path := range disk.Paths() {
		if path[0] == 'i' {
			disk.Corrupt(path)
		}
	}
	assert.Equal(t, []string{"current", "aside"}, contents(t, disk.Page()))
}

// A commit in the middle of an editor's life has few operations: they are what it costs.
func TestOperationsOfACommit(t *testing.T) {
	disk := autosavetest.NewDisk()
	files := disk.Client()
	s := autosave.NewLayout(files, autosavetest.SHA256)
	at := time.UnixMilli(1_700_000_000_000)
	for n := range 5 {
		first := files.Log()
		if n == 1 {
			assert.Equal(t, "list history", first[len(first)-1], "it knows what is there")
		}
		at = at.Add(time.Second)
		_, err := s.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("x"), Token: 7, SavedAt: at, Limits: autosave.Limits{MaxGenerations: 2}})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{
		"list index",
		"write history/1700000004001-7",
		"write index/7-6.json",
		"list index",
		"preopen history/1700000005001-7",
		"remove index/7-4.json",
		"remove history/1700000002001-7",
	}, files.Log())
	assert.Equal(t, []string{"history/1700000003001-7", "history/1700000004001-7", "history/1700000005001-7",
		"index/7-5.json", "index/7-6.json", "index/7-7.json"}, disk.Paths(), "with those of the next commit, empty")
}

// The file of a generation is made before it is known when that is saved.
func TestSavedAtIsNotWhenTheFileWasMade(t *testing.T) {
	disk := autosavetest.NewDisk()
	s := disk.Page()
	at := time.UnixMilli(1_700_000_000_000)
	var saved []autosave.Generation
	for range 3 {
		at = at.Add(4 * time.Second)
		g, err := s.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("x"), Token: 7, SavedAt: at})
		require.NoError(t, err)
		assert.Equal(t, at, g.SavedAt)
		saved = append(saved, g)
	}
	assert.Equal(t, "1700000008001-7", saved[2].ID, "the name is one millisecond after the one before")
	all, err := disk.Page().List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 3)
	for i, g := range all {
		assert.Equal(t, saved[2-i].SavedAt, g.SavedAt, "as another page reads it")
	}
}

// The files of a commit that did not come belong to nobody: the next editor removes them, under a token of its own.
func TestUnusedExpectedFilesAreRemoved(t *testing.T) {
	disk := autosavetest.NewDisk()
	_, err := disk.Page().Commit(t.Context(), commit("one", 1))
	require.NoError(t, err)
	left := disk.Paths()
	for token := range int64(2) {
		_, err = disk.Page().Commit(t.Context(), commit("more", token+2))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"more", "more", "one"}, contents(t, disk.Page()))
	assert.NotContains(t, disk.Paths(), left[1], "the generation")
	assert.NotContains(t, disk.Paths(), left[len(left)-1], "the index")
}

// stuck are the files of a storage that does not come back from opening some.
type stuck struct {
	*autosavetest.Client
	saves int // that get stuck from now on
	paths map[string]bool
}

func (s *stuck) Save(ctx context.Context, saving autosave.Saving) ([]string, error) {
	if s.saves == 0 {
		return s.Client.Save(ctx, saving)
	}
	s.saves--
	s.Preopen(saving.Name, saving.Index)
	s.paths[autosave.FolderHistory+"/"+saving.Name] = true
	s.paths[autosave.FolderIndex+"/"+saving.Index] = true
	if _, err := saving.Take(ctx); err != nil {
		return nil, err
	}
	return nil, errors.Join(autosave.ErrNotBegun, autosave.ErrNotOpened)
}

func (s *stuck) Remove(ctx context.Context, folder, name string) error {
	if s.paths[folder+"/"+name] {
		return autosavetest.ErrDisk // it is open, or about to be
	}
	return s.Client.Remove(ctx, folder, name)
}

// A file that the storage does not open is left alone, and another is written in its place.
func TestCommitUsesOtherFilesWhenOpenHangs(t *testing.T) {
	disk := autosavetest.NewDisk()
	files := &stuck{Client: disk.Client(), paths: map[string]bool{}}
	s := autosave.NewLayout(files, autosavetest.SHA256)
	taken := 0
	save := func(content string) error {
		c := commit("", 1)
		c.Take = func(context.Context) (autosave.Content, error) { taken++; return autosave.Bytes(content), nil }
		_, err := s.Commit(t.Context(), c)
		return err
	}
	require.NoError(t, save("one"))
	files.saves = 1
	require.NoError(t, save("two"))
	require.Equal(t, 3, taken, "once for each attempt")
	require.Equal(t, []string{"two", "one"}, contents(t, disk.Page()))

	files.saves = 3
	require.NoError(t, save("three"))
	require.Equal(t, []string{"three", "two", "one"}, contents(t, disk.Page()))

	clear(files.paths)
	require.NoError(t, save("four"))
	require.Equal(t, []string{"four", "three", "two"}, contents(t, disk.Page()))
	require.Len(t, disk.Paths(), 3+2+2, "the files of the failed saves are removed: %v", disk.Paths())
}

// Content that does not fit into the storage keeps no room.
func TestContentThatDoesNotFitIsRemoved(t *testing.T) {
	disk := autosavetest.NewDisk()
	s := disk.Page()
	_, err := s.Commit(t.Context(), commit("good", 1))
	require.NoError(t, err)
	before := []string{disk.Paths()[0], "index/1-1.json", "index/1-2.json"}
	disk.SetCapacity(2000)
	_, err = s.Commit(t.Context(), commit(strings.Repeat("x", 3000), 1))
	require.ErrorIs(t, err, autosave.ErrQuota)
	require.Equal(t, before, disk.Paths())
	_, err = s.Commit(t.Context(), commit(strings.Repeat("x", 1000), 1))
	require.NoError(t, err)
}

// A power loss cuts the newest index to nothing. The generation that only it knew is found in the history.
func TestTruncatedIndexIsRebuilt(t *testing.T) {
	for _, damage := range []func(*autosavetest.Disk, string){
		(*autosavetest.Disk).Cut, (*autosavetest.Disk).Corrupt,
	} {
		disk := autosavetest.NewDisk()
		s := disk.Page()
		for n := range 3 {
			_, err := s.Commit(t.Context(), commit(fmt.Sprint(n), 1))
			require.NoError(t, err)
		}
		paths := disk.Paths()
		damage(disk, paths[len(paths)-2]) // the last is empty, for the next commit
		next := disk.Page()
		require.NoError(t, next.Fence(t.Context(), 2))
		require.Equal(t, []string{"2", "1", "0"}, contents(t, next))
		_, err := next.Commit(t.Context(), commit("3", 2))
		require.NoError(t, err)
		require.Equal(t, []string{"3", "2", "1"}, contents(t, disk.Page()))
	}
}

// A former editor that wakes writes a generation that was refused. Nobody finds it later.
func TestRefusedGenerationIsNotFound(t *testing.T) {
	disk := autosavetest.NewDisk()
	files := disk.Client()
	old := autosave.NewLayout(files, autosavetest.SHA256)
	_, err := old.Commit(t.Context(), commit("one", 1))
	require.NoError(t, err)
	files.Before = func(operation string) {
		if strings.HasPrefix(operation, "write history") {
			files.Before = nil
			require.NoError(t, disk.Page().Fence(t.Context(), 2))
			killed := disk.Page()
			killed.Break(2, autosavetest.Refused, true)
			require.Error(t, killed.Fence(t.Context(), 3), "it has made an empty index")
		}
	}
	_, err = old.Commit(t.Context(), commit("refused", 1))
	require.ErrorIs(t, err, autosave.ErrStaleToken)
	next := disk.Page()
	require.NoError(t, next.Fence(t.Context(), 4))
	require.Equal(t, []string{"one"}, contents(t, next))
}

// On a full disk, saved content can be read, and a failed begin leaves nothing behind.
func TestLayoutOnFullDisk(t *testing.T) {
	disk := autosavetest.NewDisk()
	_, err := disk.Page().Commit(t.Context(), commit("one", 1))
	require.NoError(t, err)
	disk.SetCapacity(disk.Used() + 10)
	next := disk.Page()
	for range 5 {
		require.ErrorIs(t, next.Fence(t.Context(), 2), autosave.ErrQuota)
		require.Equal(t, []string{"one"}, contents(t, next))
	}
	assert.Len(t, disk.Paths(), 2+3, "%v", disk.Paths())
	disk.SetCapacity(0)
	_, err = next.Commit(t.Context(), commit("two", 2))
	require.NoError(t, err)
	require.Equal(t, []string{"two", "one"}, contents(t, disk.Page()))
	assert.LessOrEqual(t, len(disk.Paths()), 2+2+2, "%v", disk.Paths())
}
