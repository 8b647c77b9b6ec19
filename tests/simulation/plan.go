package simulation

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// plan contains the seed's decisions about the whole run. Some runs lack each kind of fault, so that they show what
// that kind hides in others.
type plan struct {
	remote        bool // the tabs also lock on a server
	browsers      int
	origins, tabs int           // origins of each browser, and tabs of each origin
	instances     int           // of the server
	programs      int           // in each tab
	mixed         bool          // some tabs lock on this machine only, beside those that also lock on a server
	editors       bool          // each tab that may use the server, if there is one, has an editor instead of programs
	path          []string      // of the document that editors edit, below the project
	beside        bool          // some tabs with an editor also have programs
	nests         float64       // the share of a program's leases in which it acquires others
	ttl           time.Duration // of editors
	chooses       bool          // editors restore and pin former texts, and decide about drafts
	merges        float64       // the share of editors that merge texts
	history       autosave.Limits
	debounce      time.Duration // the pause in typing before a save
	lasts         time.Duration
	wholeOnly     bool          // no program locks places, shares or uses slots
	sharing       bool          // most leases are shared
	steals        bool          // some leases are stolen
	hasty         bool          // leases and the pauses between them are short
	bare          bool          // there are no files: leases have no records, and tokens come from the clock
	keeps, rests  time.Duration // the maximum duration of a lease in a hasty run, and the pause before the next one
	beat          time.Duration // if not 0, programs begin at its multiples, as if a timer started them
	quiet         bool          // few faults, in pairs, for a long time
	patient       bool          // acquisitions wait for minutes
	giveUp        float64       // the share of acquisitions that are abandoned early
	shortTTL      bool
	faults        map[string]bool
	every         time.Duration // between two faults, if the run is not quiet
}

// The kinds of faults.
const (
	faultFreeze  = "freeze"
	faultCrash   = "crash"
	faultStorage = "storage"
	faultClock   = "clock"
	faultSleep   = "sleep"
	faultLoss    = "loss"   // the network loses requests and answers
	faultLate    = "late"   // requests arrive late or twice
	faultCut     = "cut"    // a browser is disconnected
	faultServer  = "server" // an instance of the server is killed
	faultStore   = "store"  // the server's connection to its store fails or stalls
)

var (
	localFaults  = []string{faultFreeze, faultCrash, faultStorage, faultClock, faultSleep}
	remoteFaults = []string{faultLoss, faultLate, faultCut, faultServer, faultStore}
	allFaults    = slices.Concat(localFaults, remoteFaults)
)

func newPlan(d *dice) plan {
	p := plan{browsers: 1, origins: 1, tabs: 2 + d.n(3), programs: 1 + d.n(2), lasts: d.between(10*time.Second, 3*time.Minute),
		wholeOnly: d.chance(0.5), steals: d.chance(0.3), shortTTL: d.chance(0.5), faults: make(map[string]bool),
		every: d.between(2*time.Second, 2*time.Minute)}
	if p.patient = d.chance(0.4); !p.patient && d.chance(0.5) {
		p.giveUp = 0.3
	}
	if p.hasty = d.chance(0.3); p.hasty {
		p.hurry(d)
	}
	faults := localFaults
	if p.remote = d.chance(0.6); p.remote {
		most := 3
		if p.hasty || d.chance(0.5) {
			most = 2
		}
		p.browsers, p.origins, p.tabs, p.instances = 1+d.n(most), 1+d.n(2), 1+d.n(most), 1+d.n(2)
		faults = allFaults
	}
	for _, f := range faults {
		p.faults[f] = d.chance(0.3)
	}
	if p.quiet = !p.hasty && d.chance(0.4); p.quiet {
		p.quieten(d, faults)
	}
	if p.sharing = d.chance(0.2); p.sharing {
		p.wholeOnly = false
	}
	p.bare = !p.remote && d.chance(0.2)
	editing := 0.4
	if p.hasty {
		editing = 0.1
	}
	if p.editors = d.chance(editing); p.editors {
		p.edit(d)
	}
	if p.faults[faultSleep] {
		p.faults[faultClock] = false // both clocks wrong at once: nothing is guaranteed
	}
	p.combine(d)
	return p
}

// combine draws which leases of different kinds meet: nested ones, those of editors and programs, and those with and without a server.
func (p *plan) combine(d *dice) {
	p.mixed = p.remote && d.chance(0.2)
	if !p.editors {
		if d.chance(0.3) {
			p.wholeOnly, p.nests = false, 0.5
		}
		return
	}
	if d.chance(0.3) {
		p.path = []string{"doc"}
		p.faults[faultClock] = p.faults[faultClock] && p.remote // without a server, the tokens of a place come from the clock
	}
	p.beside, p.nests = d.chance(0.3), pick(d, 0, 0, 0.5)
	p.wholeOnly = !p.beside && p.nests == 0
}

// documentID is the id of the document that editors edit on the server.
func (p *plan) documentID() string {
	id, err := remote.NewDocument(remote.Config{Document: "project"}).ID(p.path)
	if err != nil {
		panic(err) // the paths are short
	}
	return id
}

// edit draws how editors work.
func (p *plan) edit(d *dice) {
	p.wholeOnly, p.bare, p.ttl = true, false, pick(d, 5*time.Second, lock.DefaultTTL)
	p.chooses, p.merges, p.debounce = d.chance(0.6), pick(d, 0, 0.5, 1), pick(d, autosave.DefaultDebounce, 10*time.Second)
	p.history = autosave.Limits{MaxGenerations: 10_000, Keep: autosave.KeepLatest}
	if p.chooses && d.chance(0.4) {
		p.history = autosave.Limits{MaxGenerations: 2 + d.n(8), Keep: pick(d, autosave.KeepLatest, autosave.KeepSpread)}
	}
}

// quieten makes a run long, with long freezes, long waits, and one or two kinds of faults. Faults come in pairs, with
// minutes between the pairs, so that two faults act together and the next one does not hide an effect that takes
// minutes to show.
func (p *plan) quieten(d *dice, faults []string) {
	p.lasts = d.between(3*time.Minute, 15*time.Minute)
	p.tabs = max(p.tabs, 2)
	p.patient = d.chance(0.9)
	clear(p.faults)
	some := func() string { return pick(d, faultClock, faultSleep, pick(d, faults...)) }
	p.faults[some()], p.faults[pick(d, faultFreeze, some())] = true, true
}

// gap draws the pause before a fault. In a quiet run, a pair begins soon, and later ones after minutes.
func (p *plan) gap(d *dice, number int) time.Duration {
	switch {
	case !p.quiet:
		return d.between(p.every/4, 2*p.every)
	case number > 0 && number%2 == 0:
		return d.between(time.Minute, 9*time.Minute)
	}
	return d.between(100*time.Millisecond, 20*time.Second)
}

// fault draws the kind of a fault. The two faults of a pair differ if they can.
func (p *plan) fault(d *dice, before string) string {
	kinds := p.kinds()
	if p.quiet && len(kinds) > 1 {
		kinds = slices.DeleteFunc(kinds, func(f string) bool { return f == before })
	}
	return pick(d, kinds...)
}

// step draws by how much a wall clock is set.
func (p *plan) step(d *dice) time.Duration {
	by := pick(d, time.Second, 40*time.Second, time.Hour)
	if p.quiet {
		by = pick(d, 10*time.Minute, time.Hour)
	}
	return pick(d, by, -by)
}

// frozen draws the duration of a freeze.
func (p *plan) frozen(d *dice) time.Duration {
	least := 10 * time.Millisecond
	if p.quiet || d.chance(0.3) {
		least = time.Minute
	}
	return d.between(least, 15*time.Minute)
}

// kinds returns the kinds of faults of the run, in a fixed order.
func (p *plan) kinds() []string {
	return slices.DeleteFunc(slices.Clone(allFaults), func(f string) bool { return !p.faults[f] })
}

// hurry makes a run short and crowded.
func (p *plan) hurry(d *dice) {
	p.programs, p.lasts, p.every = 2+d.n(5), d.between(time.Second, 20*time.Second), d.between(100*time.Millisecond, 5*time.Second)
	p.keeps = pick(d, 200*time.Microsecond, 2*time.Millisecond, 100*time.Millisecond)
	p.rests = pick(d, 2*time.Millisecond, 100*time.Millisecond)
	if d.chance(0.5) {
		p.beat = d.between(5*time.Millisecond, 200*time.Millisecond)
	}
}

// options draws a program's request.
func (p *plan) options(d *dice, remote bool) lock.AcquireOptions {
	o := lock.AcquireOptions{Mode: lock.Exclusive, Timeout: d.between(time.Second, 5*time.Minute),
		HeartbeatInterval: lock.DefaultHeartbeatInterval, TTL: lock.DefaultTTL,
		Backoff: lock.Backoff{MaxRetries: lock.Unlimited}}
	if p.shortTTL && d.chance(0.5) {
		o.TTL = pick(d, 4*time.Second, 10*time.Second)
		o.HeartbeatInterval = o.TTL / 3
	}
	if !remote && d.chance(0.05) {
		o.TTL = 10 * time.Minute
	}
	if d.chance(0.2) {
		o.Backoff = lock.Backoff{}
	}
	if p.patient {
		o.Timeout, o.Backoff = d.between(time.Minute, 10*time.Minute), lock.Backoff{MaxRetries: lock.Unlimited}
	}
	switch n := d.n(100); {
	case n < 10:
		o.IfAvailable = true
	case n < 15:
		o.Timeout = lock.NoWait
	case n < 20:
		o.Steal = p.steals
	}
	if !p.wholeOnly {
		p.place(d, &o)
	}
	return o
}

// place draws the place in the project to lock.
func (p *plan) place(d *dice, o *lock.AcquireOptions) {
	if p.sharing && d.chance(0.7) {
		o.Mode, o.Steal = lock.Shared, false
		return
	}
	switch n := d.n(10); {
	case p.editors && n < 7:
		o.Path = pick(d, nil, []string{"doc"}, []string{"doc", "x"}, []string{"other"})
	case n < 4:
	case n < 6:
		o.Path = pick(d, []string{"u"}, []string{"u", "a"}, []string{"u", "a", "r"}, []string{"v"})
	case n < 7:
		o.Paths = [][]string{{"u", "a"}, {"v"}}
	case n < 8:
		o.Path, o.Slots = []string{"pool"}, 2
	default:
		o.Path = pick(d, nil, []string{"u"})
		o.Mode, o.Steal = lock.Shared, false
	}
	if o.Slots > 1 {
		o.Steal = false
	}
}
