package autosave_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// Pages type, save, die, lose the lock, get it back, hand over, sleep, end and decide about
// drafts, in an order that chance makes. After each step:
//   - every word that was journalled is in the history, in a draft, or was discarded;
//   - no generation lacks a word of the one before, unless a person has decided so.
//
// HOLDFAST_SEEDS sets how many orders are tried, and HOLDFAST_SEED repeats one.
func TestNoTypedTextIsLost(t *testing.T) {
	first, seeds := modelSeeds(60)
	done := make(map[string]int)
	for seed := first; seed < first+seeds; seed++ {
		synctestSeed(t, seed, done)
		if t.Failed() {
			t.Fatalf("HOLDFAST_SEED=%d repeats it", seed)
		}
	}
	if seeds > 1 {
		for _, s := range modelSteps {
			require.NotZero(t, done[s.name], "%s was never tried", s.name)
		}
		for _, outcome := range []string{"merged", "conflict", "sealed"} {
			require.NotZero(t, done[outcome], "no draft was ever %s", outcome)
		}
	}
	t.Log(done)
}

// modelSeeds returns the first seed of a model and how many there are.
func modelSeeds(usual uint64) (first, seeds uint64) {
	seeds = usual
	if n, err := strconv.ParseUint(os.Getenv("HOLDFAST_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("HOLDFAST_SEED"), 10, 64); err == nil {
		seeds, first = 1, n
	}
	return first, seeds
}

func synctestSeed(t *testing.T, seed uint64, done map[string]int) {
	t.Helper()
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		m := &model{world: w, storage: storage, chance: rand.New(rand.NewPCG(seed, 17)), done: done, decided: make(map[string]autosave.Resolution), failed: make(map[string]bool)}
		for range 60 {
			m.step()
			m.verify()
			if t.Failed() {
				t.Log(strings.Join(m.script, "\n"))
				return
			}
		}
		m.close()
	})
}

// model is a browser with up to three live pages and one person.
type model struct {
	*world
	storage *autosavetest.DraftStorage
	chance  *rand.Rand
	done    map[string]int
	merged  atomic.Int64
	script  []string
	pages   []*writer
	all     []*writer
	steals  []lock.Lease
	words   []string                       // that were journalled
	gone    string                         // texts that a person has discarded
	decided map[string]autosave.Resolution // of drafts that a person made the content, or put aside
	failed  map[string]bool                // these decisions could not be carried out
}

type modelStep struct {
	name  string
	often int
	do    func(m *model, p *writer)
}

var modelSteps = []modelStep{
	{"open", 4, func(m *model, _ *writer) { m.start() }},
	{"type", 12, func(m *model, p *writer) { m.type_(p) }},
	{"wait", 10, func(m *model, _ *writer) { m.sleep(time.Duration(m.chance.IntN(3000)) * time.Millisecond) }},
	{"flush", 3, func(m *model, p *writer) { _, _ = p.FlushNow(m.limit(time.Minute)) }},
	{"kill", 3, func(m *model, p *writer) { m.kill(p) }},
	{"kill at a step", 3, func(m *model, p *writer) { p.files.Break(m.chance.IntN(12), m.fault(), true) }},
	{"fault at a step", 3, func(m *model, p *writer) {
		p.files.Break(m.chance.IntN(12), autosavetest.Faults[m.chance.IntN(3)], false)
	}},
	{"dispose", 2, func(m *model, p *writer) { _ = p.Dispose(m.limit(time.Minute)); m.bury(p) }},
	{"sleep", 1, func(m *model, p *writer) { _ = p.Suspend(m.limit(time.Minute)) }},
	{"wake", 2, func(m *model, p *writer) { _ = p.Resume(m.limit(time.Minute)) }},
	{"steal", 2, func(m *model, _ *writer) { m.steals = append(m.steals, m.stealer()) }},
	{"give back", 4, func(m *model, _ *writer) { m.giveBack() }},
	{"ask", 3, func(m *model, p *writer) {
		_ = p.RequestEdit(m.limit(time.Minute), autosave.EditOptions{Force: m.chance.IntN(2) == 0, Grace: time.Second})
	}},
	{"resolve", 2, func(m *model, p *writer) { m.resolve(p) }},
}

func (m *model) step() {
	sum := 0
	for _, s := range modelSteps {
		sum += s.often
	}
	n := m.chance.IntN(sum)
	for _, s := range modelSteps {
		if n -= s.often; n >= 0 {
			continue
		}
		var p *writer
		if len(m.pages) == 0 {
			s = modelSteps[0]
		} else {
			p = m.pages[m.chance.IntN(len(m.pages))]
			m.script = append(m.script, fmt.Sprint(time.Since(m.world.start), " ", s.name, " ", p.name))
		}
		m.done[s.name]++
		s.do(m, p)
		break
	}
	synctest.Wait()
	for _, p := range slices.Clone(m.pages) { // a program that has died takes its locks along
		if p.files.Killed() {
			m.kill(p)
		}
	}
}

func (m *model) limit(d time.Duration) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), d)
	m.Cleanup(stop)
	return ctx
}

// fault is none that leaves a torn index: after one, the store no longer knows what a
// generation was made of.
func (m *model) fault() autosavetest.Fault {
	return []autosavetest.Fault{autosavetest.Refused, autosavetest.Lied}[m.chance.IntN(2)]
}

func (m *model) start() {
	if len(m.pages) == 3 {
		return
	}
	p := m.author(fmt.Sprint("page", len(m.all)), m.storage)
	p.config.Limits = autosave.Limits{MaxGenerations: 10_000, Keep: autosave.KeepLatest}
	if m.chance.IntN(2) == 0 {
		p.config.Merge = m.merge
	}
	if m.chance.IntN(3) == 0 {
		m.type_(p) // before it is known whether it may edit
	}
	m.all = append(m.all, p)
	if p.tryOpenFor(time.Minute) == nil {
		m.pages = append(m.pages, p)
	}
}

// type_ types a word and notes it where the page has journalled it.
func (m *model) type_(p *writer) {
	word := fmt.Sprintf("<%d>", len(m.script)*100+len(m.words))
	p.types(word)
	if strings.Contains(strings.Join(m.storage.Texts(), ""), word) {
		m.words = append(m.words, word)
	}
}

func (m *model) kill(p *writer) {
	p.die()
	m.bury(p)
}

func (m *model) bury(p *writer) {
	p.pageDrafts.End()
	m.pages = slices.DeleteFunc(m.pages, func(other *writer) bool { return other == p })
}

func (m *model) giveBack() {
	for _, lease := range m.steals {
		_ = lease.Release(m.limit(time.Minute))
	}
	m.steals = nil
}

// merge makes a text that has the words of both sides.
func (m *model) merge(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
	m.merged.Add(1)
	text := string(c.Theirs)
	for _, word := range words(string(c.Mine)) {
		if !strings.Contains(text, word) {
			text += word
		}
	}
	return autosave.Bytes(text), nil
}

func words(text string) []string {
	return slices.DeleteFunc(strings.SplitAfter(text, ">"), func(s string) bool { return s == "" })
}

func (m *model) resolve(p *writer) {
	all, err := p.Drafts(m.limit(time.Minute))
	if err != nil || len(all) == 0 {
		return
	}
	d := all[m.chance.IntN(len(all))]
	text, err := p.Read(m.limit(time.Minute), d.ID)
	if err != nil {
		return
	}
	as := []autosave.Resolution{autosave.AsContent, autosave.AsGeneration, autosave.AsDiscard}[m.chance.IntN(3)]
	m.script = append(m.script, fmt.Sprint("  ", d.ID, " ", d.Number, " as ", as))
	switch as {
	case autosave.AsDiscard:
		m.gone += string(text)
	default:
		m.decided[fmt.Sprint(d.ID, " ", d.Number)] = as
	}
	if p.ResolveDraft(m.limit(time.Minute), d.ID, as) != nil {
		m.failed[fmt.Sprint(d.ID, " ", d.Number)] = true
	}
}

func (m *model) verify() {
	synctest.Wait()
	store := m.disk.Clone().Page()
	require.NoError(m, store.Fence(m.Context(), 1_000_000)) // a page that was killed as it took over would hide what the generations were made of
	all, err := store.List(m.Context())
	require.NoError(m, err)
	kept := m.gone + strings.Join(m.storage.Texts(), "")
	before := ""
	for i, g := range slices.Backward(all) {
		text, err := store.Read(m.Context(), g.ID)
		require.NoError(m, err)
		kept += string(text)
		key := fmt.Sprint(g.Draft, " ", g.Number)
		switch m.decided[key] {
		case autosave.AsGeneration:
			continue
		case autosave.AsContent:
			before = string(text)
			last := !slices.ContainsFunc(all[:i], func(later autosave.Generation) bool { return later.Draft == g.Draft && later.Number == g.Number })
			if m.failed[key] || !last { // the page saves its own text again
				before = ""
			}
			continue
		}
		for _, word := range words(before) {
			require.Contains(m, string(text), word, "%s (%s %d) was saved over %q", g.ID, g.Draft, g.Number, before)
		}
		before = string(text)
	}
	for _, word := range m.words {
		require.Contains(m, kept, word, "it is lost")
	}
	for _, p := range m.all {
		m.done["sealed"] += len(p.reportedDrafts())
		m.done["conflict"] += len(p.disputes())
	}
	for _, g := range all {
		if owner, _, ok := strings.Cut(g.Draft, "-"); ok && g.OwnerName != "" && !strings.HasSuffix(g.OwnerName, owner) {
			m.done["adopted by another"]++
		}
	}
}

// close lets every page end. Then one more finds everything that waits.
func (m *model) close() {
	m.giveBack()
	for _, p := range slices.Clone(m.pages) {
		m.kill(p)
		m.sleep(time.Minute)
	}
	m.verify()
	m.done["merged"] += int(m.merged.Load())
}
