package autosave_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// An editor saves while another one takes over and saves, or while two take over at once. Their steps run in every
// possible order. Each of them dies between any two steps and during every write, or stops for as long as the others
// run. After each step:
//   - acknowledged content is in the list that any page reads, whole and in order;
//   - so is content whose draft such a list has named, because the page of that draft no longer keeps it;
//   - the list that an editor got by its fence stays valid, until an editor that is not older saves;
//   - one more editor, which begins now, takes over all acknowledged content, and saves.
func TestEveryTakeover(t *testing.T) {
	for name, enter := range map[string]func(*stage){
		"two editors that save": func(s *stage) {
			s.enter(1, []string{"0", "1"}, "2")
			s.enter(2, nil, "3")
		},
		"two that take over at once": func(s *stage) {
			s.enter(1, []string{"0", "1"}, "2")
			s.enter(2, nil)
			s.enter(3, nil)
			for _, editor := range []int{0, 0, 0, 1, 2} { // no other editor exists at their first look
				s.do(move{editor, 0})
			}
		},
	} {
		t.Run(name, func(t *testing.T) { explore(t, enter) })
	}
}

func explore(t *testing.T, enter func(*stage)) {
	seen, open := make(map[string]bool), [][]move{nil}
	for len(open) > 0 {
		moves := open[len(open)-1]
		open = open[:len(open)-1]
		s := &stage{t: t, disk: autosavetest.NewDisk()}
		enter(s)
		for _, one := range moves {
			s.do(one)
		}
		// The next step of an editor depends only on the states that it has seen.
		if state := s.String(); !seen[state] {
			seen[state] = true
			s.verify()
			for _, one := range s.moves() {
				open = append(open, append(slices.Clip(moves), one))
			}
		}
		s.end()
	}
	t.Logf("%d states", len(seen))
	require.Greater(t, len(seen), 1000, "there are more than that")
}

// move is the next step of an editor; with a fault, the editor dies in it.
type move struct {
	editor int
	fault  autosavetest.Fault
}

// stage is a storage and its editors, each of which waits for its next step.
type stage struct {
	t       *testing.T
	disk    *autosavetest.Disk
	editors []*editor
	acked   []string
	named   []string // contents whose drafts a list has named
	history []string
}

type editor struct {
	token int64
	step  chan string // the next step; closed when it has ended
	turn  chan autosavetest.Fault
	next  string // the step; "" when it has ended
	seen  []string

	fenced bool     // it has taken over
	told   []string // the list that it found then
	saving []string // the content that it has begun to save since
}

// enter makes an editor take over and save. It has saved the contents of already before any other editor begins; it
// saves the others in steps.
func (s *stage) enter(token int64, already []string, contents ...string) {
	e := &editor{token: token, step: make(chan string), turn: make(chan autosavetest.Fault), fenced: already != nil}
	steps := already == nil
	store := autosave.NewLayout(s.disk.Stepped(func(step string) autosavetest.Fault {
		if !steps {
			return 0
		}
		e.step <- step
		return <-e.turn
	}), autosavetest.SHA256)
	s.editors = append(s.editors, e)
	go func() {
		defer close(e.step)
		for _, content := range already {
			_, err := store.Commit(s.t.Context(), numbered(content, token))
			assert.NoError(s.t, err)
		}
		steps = true
		if store.Fence(s.t.Context(), token) != nil {
			return
		}
		e.fenced = true
		for _, content := range contents {
			e.saving = append(e.saving, content)
			c := numbered(content, token)
			c.Committed = func(autosave.Generation) { s.acked = append(s.acked, content) }
			if _, err := store.Commit(s.t.Context(), c); err != nil {
				return
			}
		}
	}()
	e.next = <-e.step
}

// numbered is a commit at the time that its content says. The latest three are kept.
func numbered(content string, token int64) autosave.Commit {
	return autosave.Commit{Content: autosave.Bytes(content), Draft: content, Number: 1, Token: token, SavedAt: time.UnixMilli(int64(content[0])),
		Limits: autosave.Limits{MaxGenerations: 3, Keep: autosave.KeepLatest}}
}

// moves are all possible next steps. An editor that dies between two steps simply makes no further step, so only deaths
// during a step are listed.
func (s *stage) moves() (all []move) {
	for i, e := range s.editors {
		if e.next != "" {
			all = append(all, move{i, 0})
		}
		if strings.HasPrefix(e.next, "write ") {
			all = append(all, move{i, autosavetest.Torn})
		}
	}
	return all
}

func (s *stage) do(m move) {
	e := s.editors[m.editor]
	s.history = append(s.history, fmt.Sprintf("%d: %s %v", e.token, e.next, m.fault))
	e.seen = append(e.seen, e.next, fmt.Sprint(m.fault))
	if folder, ok := strings.CutPrefix(e.next, "list "); ok {
		names, _ := s.disk.Stepped(nil).List(s.t.Context(), folder)
		e.seen = append(e.seen, names...)
	} else if path, ok := strings.CutPrefix(e.next, "read "); ok {
		e.seen = append(e.seen, s.files(path)...)
	}
	before := e.fenced
	e.turn <- m.fault
	e.next = <-e.step
	if m.fault != 0 {
		for e.next != "" { // dead, it does nothing more
			e.turn <- autosavetest.Refused
			e.next = <-e.step
		}
	}
	if e.fenced && !before {
		e.told = contents(s.t, s.disk.Page())
	}
	s.list()
}

// list is the list of a page that does not edit. Nobody keeps the first two contents.
func (s *stage) list() {
	all, err := s.disk.Page().List(s.t.Context())
	require.NoError(s.t, err)
	for _, g := range all {
		if g.Draft > "1" && !slices.Contains(s.named, g.Draft) {
			s.named = append(s.named, g.Draft)
		}
	}
}

// files are the files with this prefix, with their contents.
func (s *stage) files(prefix string) (all []string) {
	for _, path := range s.disk.Paths() {
		if strings.HasPrefix(path, prefix) {
			folder, name, _ := strings.Cut(path, "/")
			content, _ := s.disk.Stepped(nil).Read(s.t.Context(), folder, name)
			all = append(all, path+"="+string(content))
		}
	}
	return all
}

// String is the state on which all later steps depend.
func (s *stage) String() string {
	all := append(s.files(""), s.named...)
	for _, e := range s.editors {
		all = append(all, fmt.Sprint(e.seen, e.next, e.told))
	}
	return strings.Join(all, "\n")
}

// end ends the editors.
func (s *stage) end() {
	for _, e := range s.editors {
		for e.next != "" {
			e.turn <- autosavetest.Refused
			e.next = <-e.step
		}
	}
}

func (s *stage) verify() {
	t := s.t
	defer func() {
		if t.Failed() {
			t.Logf("after\n\t%s", strings.Join(s.history, "\n\t"))
		}
	}()
	present := contents(t, s.disk.Page())
	for _, content := range slices.Concat(s.acked, s.named) {
		require.Contains(t, present, content, "acknowledged or named, and lost")
	}
	require.True(t, slices.IsSortedFunc(present, func(a, b string) int { return strings.Compare(b, a) }), "not in order: %v", present)
	for _, e := range s.editors {
		if e.told != nil {
			require.True(t, e.expects(present), "%d was told %v, saves %v, and there is %v", e.token, e.told, e.saving, present)
		}
	}
	next := s.disk.Clone().Page()
	require.NoError(t, next.Fence(t.Context(), 9))
	found := contents(t, next)
	for _, content := range slices.Concat(s.acked, s.named) {
		require.Contains(t, found, content, "acknowledged or named, and lost to the next")
	}
	_, err := next.Commit(t.Context(), numbered("9", 9))
	require.NoError(t, err)
	after := contents(t, next)
	require.Equal(t, append([]string{"9"}, found[:2]...), after)
}

// expects reports whether the list contains the acknowledged content, with the first part of the editor's own saves.
// The oldest may be gone.
func (e *editor) expects(present []string) bool {
	all := e.told
	for n := range len(e.saving) + 1 {
		if n > 0 {
			all = append([]string{e.saving[n-1]}, all...)
		}
		if len(present) >= min(3, len(all)) && slices.Equal(present, all[:min(len(present), len(all))]) {
			return true
		}
	}
	return false
}
