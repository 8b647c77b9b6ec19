package soak

import (
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// lasting is a fault that lasts until it is undone.
type lasting struct {
	fault
	end  time.Time
	undo func()
}

// strike causes a fault. A fault without a duration is over when it returns.
func (r *run) strike(f fault) {
	r.endLasting(func(l lasting) bool {
		sameTab := l.targets() == f.targets() && l.Target == f.Target
		// While a process is suspended, no renderer can be found. A server does not start without its store.
		return sameTab || l.Kind == suspended && f.targets() == "tab" || l.targets() != "tab" && f.Kind == "server killed"
	})
	r.faults[f.Kind]++
	undo := r.do(f)
	if undo != nil {
		r.lasting = append(r.lasting, lasting{f, time.Now().Add(f.For), undo})
	}
}

const suspended = "process of a tab suspended"

func (r *run) do(f fault) (undo func()) {
	switch f.targets() {
	case "tab":
		return r.doToTab(f)
	case "machine":
		return r.doToMachine(f)
	}
	switch server := r.servers[f.Target]; f.Kind {
	case "server killed":
		address := server.Address()
		server.Kill()
		server.Start(address)
	case "server suspended":
		server.Signal(syscall.SIGSTOP)
		return func() { server.Signal(syscall.SIGCONT) }
	case "server cut off from the store":
		r.store.Cut(true)
		return func() { r.store.Cut(false) }
	}
	return nil
}

func (r *run) doToTab(f fault) (undo func()) {
	i := f.Target
	tab := r.tabs[i]
	switch f.Kind {
	case "worker terminated":
		r.worker(i)
		return nil
	case "tab frozen":
		tab.Freeze()
		return tab.Resume
	case suspended:
		tab.Suspend()
		return tab.Continue
	}
	r.checker.end(r.prefix(i))
	switch f.Kind {
	case "crash of a tab":
		tab.Crash()
		tab.Navigate(r.home(i))
	case "tab closed and another opened":
		tab.Close()
		r.closed = append(r.closed, tab)
		r.tabs[i] = r.browser.Open(r.t, r.home(i))
	case "reload":
		tab.Reload()
	case "navigation away and back":
		tab.Navigate(r.site.address(i%machines, "/away"))
		_ = tab.Eval("history.back(); null", nil)
		if err := tab.Wait("location.pathname === '/soak'", browser.Limit); tab.Crashed() {
			return nil // it is revived
		} else if err != nil {
			r.t.Fatalf("away and back: %v", err)
		}
	}
	r.enter(i)
	return nil
}

// revive gives tabs that crashed by themselves another page, and counts them.
func (r *run) revive() {
	for i, tab := range r.tabs {
		if tab.Crashed() {
			r.faults["tab that crashed by itself"]++
			r.t.Logf("tab %d crashed by itself after %v: of all its crashes so far %v", i, r.checker.now(), tab.Crashes())
			r.checker.end(r.prefix(i))
			r.endLasting(func(l lasting) bool { return l.Kind == suspended || l.targets() == "tab" && l.Target == i })
			tab.Navigate(r.home(i))
			r.enter(i)
		}
	}
}

func (r *run) doToMachine(f fault) (undo func()) {
	warden := r.wardens[f.Target]
	switch f.Kind {
	case "clock set forward and back":
		set := func(ahead time.Duration) {
			r.checker.skew(f.Target)
			r.site.ahead[f.Target].Store(ahead.Milliseconds())
		}
		set(leap)
		return func() { set(0) }
	case "machine cut off from its server":
		r.ways[f.Target].Cut(true)
		return func() { r.ways[f.Target].Cut(false) }
	case "no room in the browser's storage":
		origin := r.site.address(f.Target, "")
		warden.Quota(origin, 1)
		return func() { warden.Quota(origin, 0) }
	}
	panic("unknown: " + f.Kind)
}

// endLasting undoes the chosen lasting faults.
func (r *run) endLasting(chosen func(lasting) bool) {
	r.lasting = slices.DeleteFunc(r.lasting, func(l lasting) bool {
		if chosen(l) {
			l.undo()
			return true
		}
		return false
	})
}
