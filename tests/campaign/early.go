package campaign

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// plan is how the next page begins. The zero plan draws it.
type plan struct {
	early   bool    // over a slow network: the page edits before the Wasm is there
	trouble string  // what else happens to its downloads
	variant int     // of its documents
	at      float64 // when its sessions begin; 0: at once
	stopAt  int     // the step at which it waits; 0: none
}

// The counts of pages that end at a step, in the report.
const (
	atStep = "pages that stopped at a step"
	noStep = "steps that no page came to"
)

// variants is the number of projects that the early pages of a chapter share.
const variants = 3

// troubles are the faults of a page's downloads, besides a Wasm that is late. The name of a file stands for one of several
// in either host.
var troubles = map[string]map[string]fault{
	"none":                {},
	"endless Wasm":        {"holdfast.wasm": never},
	"half a Wasm":         {"holdfast.wasm": half},
	"no Wasm":             {"holdfast.wasm": missing},
	"endless worker":      {"holdfast-worker.js": never, "holdfast-helper.js": never},
	"half a worker":       {"holdfast-worker.js": half, "holdfast-helper.js": half},
	"worker dies":         {"holdfast-worker.js": dying(os.DirFS(siteDir)), "holdfast-helper.js": dying(os.DirFS(siteDir))},
	"endless host module": {"holdfast-host.js": never, "holdfast-page.js": never},
	"no host module":      {"holdfast-host.js": missing, "holdfast-page.js": missing},
	"slow AutoSave":       {"holdfast-autosave.js": after(500*time.Millisecond, 100*time.Millisecond)},
	"no AutoSave":         {"holdfast-autosave.js": missing},
	"no early module":     {"holdfast-early.js": missing},
	"slow preview":        {"holdfast-preview.js": after(time.Second, 0)},
}

// draws completes the plan of the next page.
func (r *run) draws() plan {
	p := r.plan
	r.plan = plan{}
	if !p.early {
		p.early, p.variant = r.random.IntN(3) == 0, r.random.IntN(variants)
	}
	if p.early && p.trouble == "" {
		p.trouble = "none"
		if r.random.IntN(2) == 0 {
			names := slices.Sorted(maps.Keys(troubles))
			p.trouble = names[r.random.IntN(len(names))]
		}
	}
	return p
}

// delivers prepares the downloads of a page with that plan, and returns the folder of its files.
func (r *run) delivers(p *opened, plan plan) (folder string) {
	r.folders++
	folder = fmt.Sprint(r.folders)
	faults := map[string]fault{"holdfast.wasm": after(r.pause(3*time.Second), r.pause(150*time.Millisecond))}
	maps.Copy(faults, troubles[plan.trouble])
	p.leaves = r.net.expect(folder, faults)
	r.oracle.count["early pages, trouble: "+plan.trouble]++
	return "/net/" + folder + "/"
}

// step ends a page at one step of its beginning: before the Wasm is there, or while Go takes over.
func (r *run) step(i int) {
	r.plan = plan{early: true, variant: r.random.IntN(variants), stopAt: 1 + r.random.IntN(200)}
	r.leave(i, "reloaded")
	select {
	case s := <-r.net.stops:
		r.oracle.count[atStep]++
		r.stopped(i, s)
	case <-time.After(4 * time.Second):
		r.oracle.count[noStep]++
	}
}

// stopped ends a page that waits at a step. A browser that closes the page waits for it.
func (r *run) stopped(i int, s stop) {
	p := r.pages[i]
	for _, e := range s.entries {
		r.log.entry(r.oracle, e)
		if e.What == "step" {
			r.oracle.count["stopped at: "+e.Code]++
			continue
		}
		r.oracle.heard(p.sessions, e)
	}
	how := []string{"crashed", "crashed", "crashed", "closed", "reloaded", "navigated", "frozen"}[r.random.IntN(7)]
	if how == "frozen" {
		close(s.goOn)
		r.freeze(i)
		return
	}
	p.stopped = true
	pause := r.pause(30 * time.Millisecond)
	if how == "crashed" {
		pause = time.Second // it ends where it is
	}
	go func() {
		time.Sleep(pause)
		close(s.goOn)
	}()
	r.leave(i, how)
}

// together lets two pages begin with the same documents at the same time.
func (r *run) together(i int) {
	k := (i + 1 + r.random.IntN(tabs-1)) % tabs
	both := plan{early: true, trouble: "none", variant: r.random.IntN(variants), at: clock() + 1500}
	for _, page := range []int{i, k} {
		r.plan = both
		r.leave(page, "reloaded")
	}
	r.work(time.Second + r.pause(2*time.Second))
	r.leave(i, []string{"crashed", "closed", "reloaded"}[r.random.IntN(3)])
}

// hang ends a page whose journal has no worker, because the worker's script does not arrive: after five seconds, localStorage
// has the words.
func (r *run) hang(i int) {
	r.plan = plan{early: true, trouble: "endless worker", variant: r.random.IntN(variants)}
	r.leave(i, "reloaded")
	r.work(5*time.Second + r.pause(3*time.Second))
	r.leave(i, []string{"crashed", "crashed", "closed", "reloaded"}[r.random.IntN(4)])
}
