package autosave_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// The pages of TestNoTypedTextIsLost do not wait for one call before the next one: everything happens at once, in an order that chance
// makes. A page may also sleep in the cache of the browser, and continue later. After each step, and at rest:
//   - every word that was journalled is in the history, in a draft, or was discarded, and so is every word of a page that has ended without an
//     error;
//   - no call takes longer than its limit;
//   - an editor that says that everything is saved shows what is saved;
//   - a page says that it has unsaved text if, and only if, it has some or a draft waits;
//   - a draft about which somebody has decided, or that a generation contains, is not offered again.
//
// HOLDFAST_SEEDS sets how many orders are tried, and HOLDFAST_SEED repeats one.
func TestNoTypedTextIsLostAtOnce(t *testing.T) {
	first, seeds := modelSeeds(60)
	done := make(map[string]int)
	for seed := first; seed < first+seeds; seed++ {
		drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
			m := &parallel{seed: seed, model: model{world: w, storage: storage, chance: rand.New(rand.NewPCG(seed, 23)), done: done}, faults: seed%2 == 0, settled: make(map[string]int64)}
			m.run()
			for _, p := range m.all {
				p.files.Mend()
			}
			m.calls.Wait()
		})
	}
	if seeds > 1 {
		for _, s := range parallelSteps {
			require.NotZero(t, done[s.name], "%s was never tried", s.name)
		}
	}
	t.Log(done)
}

// parallel is a model whose calls run at once.
type parallel struct {
	model
	seed    uint64
	faults  bool
	calls   sync.WaitGroup
	mu      sync.Mutex       // guards script and the fields below
	settled map[string]int64 // the drafts about which somebody has decided, up to a number
	wrong   []string
}

type parallelStep struct {
	name  string
	often int
	do    func(m *parallel, p *writer)
}

var parallelSteps = []parallelStep{
	{"open", 4, func(m *parallel, _ *writer) { m.open() }},
	{"type", 25, func(m *parallel, p *writer) { m.types(p) }},
	{"wait", 10, func(m *parallel, _ *writer) { m.sleep(time.Duration(m.chance.IntN(3000)) * time.Millisecond) }},
	{"blink", 10, func(m *parallel, _ *writer) { m.sleep(time.Duration(m.chance.IntN(150)) * time.Millisecond) }},
	{"flush", 5, func(m *parallel, p *writer) {
		m.call(p, "flush", func(ctx context.Context) error { _, err := p.FlushNow(ctx); return err })
	}},
	{"kill", 3, func(m *parallel, p *writer) { m.kill(p) }},
	{"fault", 4, func(m *parallel, p *writer) {
		if m.faults {
			p.files.Break(m.chance.IntN(12), m.fault(), m.chance.IntN(3) == 0)
		}
	}},
	{"dispose", 4, func(m *parallel, p *writer) { m.dispose(p) }},
	{"suspend", 3, func(m *parallel, p *writer) { m.call(p, "suspend", p.Suspend) }},
	{"resume", 4, func(m *parallel, p *writer) { m.call(p, "resume", p.Resume) }},
	{"cache", 4, func(m *parallel, p *writer) { m.cache(p) }},
	{"steal", 3, func(m *parallel, _ *writer) { m.steals = append(m.steals, m.stealer()) }},
	{"give back", 6, func(m *parallel, _ *writer) { m.giveBack() }},
	{"ask", 7, func(m *parallel, p *writer) {
		force := m.chance.IntN(2) == 0
		m.call(p, "ask", func(ctx context.Context) error {
			return p.RequestEdit(ctx, autosave.EditOptions{Force: force, Grace: time.Second})
		})
	}},
	{"resolve", 10, func(m *parallel, p *writer) { m.decide(p) }},
	{"restore", 4, func(m *parallel, p *writer) { m.restore(p) }},
}

func (m *parallel) run() {
	sum := 0
	for _, s := range parallelSteps {
		sum += s.often
	}
	for range 60 {
		n := m.chance.IntN(sum)
		if len(m.pages) == 0 {
			n = 0
		}
		for _, s := range parallelSteps {
			if n -= s.often; n >= 0 {
				continue
			}
			var p *writer
			if len(m.pages) > 0 {
				p = m.pages[m.chance.IntN(len(m.pages))]
				m.note("%s %s", s.name, p.name)
			}
			m.done[s.name]++
			s.do(m, p)
			break
		}
		synctest.Wait()
		for _, p := range slices.Clone(m.pages) {
			if p.files.Killed() {
				m.kill(p)
			}
		}
		if m.check(); m.Failed() {
			return
		}
	}
	m.rest()
}

func (m *parallel) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append(m.script, fmt.Sprint(time.Since(m.world.start), " ")+fmt.Sprintf(format, args...))
}

func (m *parallel) bad(format string, args ...any) {
	m.note("WRONG "+format, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// check fails if something was wrong, or if a word is lost.
func (m *parallel) check() {
	if lost := m.lacks(m.words); len(lost) > 0 {
		m.bad("lost %v", lost)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.wrong) > 0 {
		m.Errorf("%s\n%s\nHOLDFAST_SEED=%d repeats it", strings.Join(m.script, "\n"), strings.Join(m.wrong, "\n"), m.seed)
	}
}

// lacks returns the words that are in no generation and no draft, and that nobody has discarded.
func (m *parallel) lacks(words []string) (lost []string) {
	kept := strings.Join(m.storage.Texts(), "")
	store := m.disk.Page()
	all, _ := store.List(context.Background())
	for _, g := range all {
		text, _ := store.Read(context.Background(), g.ID)
		kept += string(text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept += m.gone
	for _, word := range words {
		if !strings.Contains(kept, word) {
			lost = append(lost, word)
		}
	}
	return lost
}

func (m *parallel) open() {
	if len(m.pages) == 3 {
		return
	}
	p := m.author(fmt.Sprint("page", len(m.all)), m.storage)
	p.config.NoStandby = m.chance.IntN(3) == 0
	if m.chance.IntN(2) == 0 {
		p.config.Merge = m.merge
	}
	if m.chance.IntN(3) == 0 {
		m.types(p)
	}
	m.begin(p)
}

func (m *parallel) begin(p *writer) {
	p.config.Limits = autosave.Limits{MaxGenerations: 10_000, Keep: autosave.KeepLatest}
	if m.chance.IntN(2) == 0 {
		p.slow()
	}
	hear := p.config.Listener
	p.config.Listener = func(e autosave.Event) {
		line := fmt.Sprintf("      %s heard %s %s pending %d", p.name, e.Type, e.State.Phase, e.State.PendingBytes)
		if e.Generation != nil {
			line += fmt.Sprint(" ", e.Generation.ID, " of ", e.Generation.Draft, " ", e.Generation.Number)
		}
		if e.Draft != nil {
			line += fmt.Sprint(" draft ", e.Draft.ID, " ", e.Draft.Number)
		}
		if e.Loaded {
			line += fmt.Sprintf(" content %q", e.Content)
		}
		m.note("%s", line)
		hear(e)
	}
	m.all = append(m.all, p)
	m.note("open %s", p.name)
	if p.tryOpenFor(time.Minute) == nil {
		m.pages = append(m.pages, p)
	}
}

// types adds a word, and notes it where the page has journalled it.
func (m *parallel) types(p *writer) {
	word := fmt.Sprintf("<%s.%d>", p.name, p.number)
	p.types(word)
	m.note("   %s types %s: number %d of %s", p.name, word, p.number, p.id)
	if strings.Contains(strings.Join(m.storage.Texts(), ""), word) {
		m.words = append(m.words, word)
	}
}

// cache puts a page to sleep without a word, as the browser does with a page that the user leaves, and lets it begin again as the user
// returns.
func (m *parallel) cache(p *writer) {
	m.kill(p)
	m.sleep(time.Duration(m.chance.IntN(3000)) * time.Millisecond)
	q := m.author(p.name+"'", m.storage).continues(p)
	q.config.Merge, q.config.NoStandby = p.config.Merge, p.config.NoStandby
	m.begin(q)
}

// call makes a call of a page. The page's text is stored before and after it.
func (m *parallel) call(p *writer, what string, f func(ctx context.Context) error) {
	typed := slices.DeleteFunc(words(p.shows()), func(word string) bool { return !slices.Contains(m.words, word) })
	m.calls.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err := f(ctx)
		m.note("%s %s: %v", p.name, what, err)
		if ctx.Err() != nil {
			m.bad("%s of %s took a minute", what, p.name)
		}
		if lost := m.lacks(typed); len(lost) > 0 {
			m.bad("%s of %s ended with %v, and %v is lost", what, p.name, err, lost)
		}
	})
}

func (m *parallel) dispose(p *writer) {
	m.pages = slices.DeleteFunc(m.pages, func(other *writer) bool { return other == p })
	m.call(p, "dispose", func(ctx context.Context) error {
		err := p.Dispose(ctx)
		if lost := m.lacks(words(p.shows())); err == nil && !p.dead.Load() && len(lost) > 0 {
			m.bad("%s ended without an error, and %v is lost", p.name, lost)
		}
		p.pageDrafts.End()
		return err
	})
}

func (m *parallel) decide(p *writer) {
	as := []autosave.Resolution{autosave.AsContent, autosave.AsGeneration, autosave.AsDiscard}[m.chance.IntN(3)]
	pick := m.chance.IntN(100)
	m.call(p, "resolve as "+string(as), func(ctx context.Context) error {
		all, err := p.Drafts(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		d := all[pick%len(all)]
		text, err := p.Read(ctx, d.ID)
		if err != nil {
			return err
		}
		m.note("%s resolves %s %d %q as %s", p.name, d.ID, d.Number, text, as)
		if as == autosave.AsDiscard {
			m.mu.Lock()
			m.gone += string(text)
			m.mu.Unlock()
		}
		if err = p.ResolveDraft(ctx, d.ID, as); err == nil {
			m.mu.Lock()
			m.settled[d.ID] = max(m.settled[d.ID], d.Number)
			m.mu.Unlock()
		}
		return err
	})
}

func (m *parallel) restore(p *writer) {
	if p.ReadOnly() {
		return
	}
	pick := m.chance.IntN(100)
	m.call(p, "restore", func(ctx context.Context) error {
		all, err := p.History(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		content, err := p.Restore(ctx, all[pick%len(all)].ID)
		if err != nil {
			return err
		}
		_, _ = p.pageDrafts.Seal(ctx, autosave.CauseLockLost) // text typed meanwhile is a draft
		p.mu.Lock()
		defer p.mu.Unlock()
		p.text = string(content)
		p.renew("")
		return nil
	})
}

// rest lets everything come to rest, and compares what the pages say with what is stored. One more page finds what waits.
func (m *parallel) rest() {
	m.giveBack()
	m.calls.Wait()
	for _, p := range m.pages {
		p.files.Mend()
	}
	m.sleep(5 * time.Minute)
	content, _ := m.disk.Page().Read(m.Context(), autosave.Current)
	for _, p := range m.pages {
		state := p.State()
		p.mu.Lock()
		unsaved := p.number > p.stored
		p.mu.Unlock()
		if state.Phase == autosave.PhaseIdle && string(content) != p.shows() {
			m.bad("%s shows %q, and %q is saved", p.name, p.shows(), content)
		}
		if unsaved && state.PendingBytes == 0 {
			m.bad("%s has unsaved text, and says that it has none", p.name)
		}
		if !unsaved && state.PendingBytes > 0 && state.Drafts == 0 {
			m.bad("%s has no unsaved text, and says that it has some", p.name)
		}
	}
	for _, p := range slices.Clone(m.pages) {
		if m.chance.IntN(2) == 0 {
			m.kill(p)
		} else {
			m.dispose(p)
			m.calls.Wait()
		}
		m.sleep(time.Minute)
	}
	m.last()
	m.check()
}

func (m *parallel) last() {
	p := m.author("last", m.storage)
	m.begin(p)
	m.sleep(time.Minute)
	if p.ReadOnly() {
		m.bad("the last page may not edit: %v", p.State())
		return
	}
	waiting, err := p.Drafts(m.Context())
	require.NoError(m, err)
	all, err := p.History(m.Context())
	require.NoError(m, err)
	for _, d := range waiting {
		if slices.ContainsFunc(all, func(g autosave.Generation) bool {
			return strings.TrimSuffix(g.Draft, "_merged") == d.ID && g.Number >= d.Number
		}) {
			m.bad("draft %s %d is offered, and a generation contains it", d.ID, d.Number)
		}
		if number, decided := m.settled[d.ID]; decided && number >= d.Number {
			m.bad("draft %s %d is offered after a decision", d.ID, d.Number)
		}
	}
}
