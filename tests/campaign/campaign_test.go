package campaign

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

var (
	length  = flag.Duration("for", 12*time.Second, "how long pages end before the last look")
	endings = flag.Int("endings", 0, "stop after so many endings; 0: when the time is over")
	seed    = flag.Uint64("seed", 0, "of all that is drawn, to have the same actions again; 0 draws one")
	only    = flag.String("only", "", "names of the actions that are drawn, separated by commas; empty: all")
	before  = flag.String("before", "", "folder of an older build of the site, which some pages use beside this one")
	logFile = flag.String("log", "../../.cache/campaign.log", "file for all that happened")
	output  = flag.String("report", "../../.cache/campaign.md", "file for the report")
)

// For every way in which a page ends: no acknowledged word is lost from content and history, and no word older than
// the journal's interval is lost from content, history and drafts together.
func TestCampaign(t *testing.T) {
	r := start(t, "", *logFile)
	r.only = slices.DeleteFunc(strings.Split(*only, ","), func(name string) bool { return name == "" })
	defer func() { // also after an earlier failure
		report := r.report()
		t.Log("\n" + report)
		assert.NoError(t, write(*output, report))
	}()
	r.strike(*length, *endings)
	r.finish()
	assert.Empty(t, r.oracle.violations)
	assert.Positive(t, r.oracle.count["saves acknowledged"])
	assert.Positive(t, r.endings)
	assert.LessOrEqual(t, r.oracle.count[noStep], 4*r.oracle.count[atStep]+2, "too few pages come to the step at which they are to end")
}

// Each plant breaks a promise in every worker and page. It shows when pages end in these ways.
var plants = map[string]struct {
	script, found string
	ends          []string
}{
	"drafts are not written": {`{
		const write = globalThis.FileSystemSyncAccessHandle?.prototype.write
		const get = FileSystemDirectoryHandle.prototype.getFileHandle, open = FileSystemFileHandle.prototype.createSyncAccessHandle
		const drafts = new WeakSet(), handles = new WeakSet()
		FileSystemDirectoryHandle.prototype.getFileHandle = async function (...args) {
			const file = await get.apply(this, args)
			if (this.name === 'drafts') drafts.add(file)
			return file
		}
		if (open) FileSystemFileHandle.prototype.createSyncAccessHandle = async function (...args) {
			const handle = await open.apply(this, args)
			if (drafts.has(this)) handles.add(handle)
			return handle
		}
		if (write) FileSystemSyncAccessHandle.prototype.write = function (data, ...args) {
			return handles.has(this) ? data.byteLength : write.call(this, data, ...args)
		}
	}`, "it was journalled", []string{"crashed"}},
	"saved text is overwritten by older": {`{
		globalThis.planted = {options: {maxGenerations: 1}, older: text => text.slice(text.indexOf('\n', text.length / 10) + 1)}
	}`, "acknowledged", []string{"reloaded", "handover"}},
	"an editor is emptied before it is saved at close": {"globalThis.planted = {empties: true}", "torn down", []string{"torn down"}},
	"a page whose worker hangs stores nothing": {`{
		const set = globalThis.Storage?.prototype.setItem
		if (set) Storage.prototype.setItem = function (key, value) { if (!key.startsWith('holdfast:draft:')) set.call(this, key, value) }
	}`, "its page ended", []string{"worker hangs"}},
	"Go begins without the words that were typed before": {"globalThis.planted = {forgets: true}", "it was journalled", []string{"reloaded", "two start together"}},
}

// The oracle finds each planted defect. Each plant has its own browser and server.
func TestCampaignFindsWhatIsPlanted(t *testing.T) {
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, plant.script, filepath.Join(t.TempDir(), "log"))
			r.oracle.patience = patience / 4
			r.only = plant.ends
			found := func() bool { return strings.Contains(strings.Join(r.oracle.violations, "\n"), plant.found) }
			for limit := time.Now().Add(4 * time.Minute); !found() && time.Now().Before(limit); {
				r.strike(time.Second, 0)
			}
			t.Log(r.report())
			require.True(t, found())
		})
	}
}

func start(t *testing.T, plant, log string) *run {
	number := *seed
	if number == 0 {
		number = rand.Uint64N(1_000_000)
	}
	t.Logf("to repeat this run: make campaign FOR=%v ENDINGS=%d SEED=%d", *length, *endings, number)
	r := &run{t: t, seed: number, random: rand.New(rand.NewPCG(number, 1)), oracle: newOracle(journal, patience), ends: map[*session]float64{}, lie: map[*document]place{}}
	r.log = newRecord(t, log)
	r.server = serving.Run(t, "--data-dir", t.TempDir(), "--lock-ttl", serverTTL.String(), "--rate", "0", "--new-rate", "0", "--log-level", "error")
	r.wire = serving.NewWire(t, "tcp", r.server.Address())
	r.former = *before
	r.site, r.net = newSite(t, r.wire, plant, r.former)
	r.browser = browser.Start(t, browser.Options{})
	r.warden = r.browser.Open(t, r.site.URL("/away"))
	r.begun = time.Now()
	for i := range r.pages {
		r.pages[i] = &opened{tab: r.browser.Open(t, r.home()), leaves: func() {}}
		r.enter(i)
	}
	return r
}

// strike runs actions until the time is over or enough sessions have ended.
func (r *run) strike(length time.Duration, enough int) {
	for end := time.Now().Add(length); time.Now().Before(end) && (enough == 0 || r.endings < enough); {
		r.work(r.pause(400 * time.Millisecond))
		for i := range r.pages {
			if r.pages[i].tab.Crashed() { // by itself
				r.oracle.count["pages that crashed by themselves"]++
				r.ended(i, "crashed by itself", true, clock())
				r.pages[i].tab.Navigate(r.home())
				r.enter(i)
			}
		}
		a, i := r.draw(), r.random.IntN(tabs)
		r.log.line(clock(), "## %s, page %d", a.name, i)
		a.do(r, i)
	}
}

// finish ends everything in an orderly way, opens each document once more, and looks for every word.
func (r *run) finish() {
	r.undoDue(time.Now().Add(time.Hour))
	r.work(2 * serverTTL) // disconnected pages reconnect
	for i, p := range r.pages {
		r.thaw(p)
		r.poll(i)
		at := clock()
		p.tab.Close()
		p.leaves()
		r.ended(i, "closed at the end", false, at)
	}
	tab := r.browser.Open(r.t, r.home())
	tab.WaitFor("globalThis.loaded", browser.Limit)
	for _, d := range r.oracle.documents {
		r.last(tab, d)
	}
}
