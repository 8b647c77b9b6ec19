// Package strangers runs foreign suites for navigator.locks against holdfast.locks, with both strategies and hosts,
// and against the browser's own locks. The suites are not part of this repository: tools/strangers fetches them.
package strangers

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

var (
	dir   = flag.String("sources", "", "the folder that tools/strangers made")
	grep  = flag.String("grep", "", "run those tests of wa-sqlite whose name contains this")
	limit = flag.Duration("limit", 90*time.Minute, "how long a suite may take; the SQL tests of wa-sqlite take minutes")
)

// locks are the locks that answer a suite's requests.
type locks struct {
	name     string
	Strategy string `json:"strategy"` // "" for the browser, without Holdfast
	Host     string `json:"host"`
	Alone    bool   `json:"alone"` // there are no Web Locks beside the file
	Root     string `json:"root"`
}

var all = []locks{
	{name: "control"},
	{name: "web-lock worker", Strategy: "web-lock", Host: "worker"}, {name: "web-lock page", Strategy: "web-lock", Host: "page"},
	{name: "file-lock worker", Strategy: "file-lock", Host: "worker"}, {name: "file-lock page", Strategy: "file-lock", Host: "page"},
	{name: "file alone worker", Strategy: "file-lock", Host: "worker", Alone: true}, {name: "file alone page", Strategy: "file-lock", Host: "page", Alone: true},
}

// suite is a page that runs the files of a foreign suite.
type suite struct {
	name    string
	harness string // "jasmine" or "mocha"
	files   []string
	grep    string
}

var suites = func() []suite {
	s := []suite{
		{name: "broadcast-channel", harness: "mocha", files: []string{"/broadcast-channel.js"}, grep: "LeaderElection"},
		{name: "proper-lockfile", harness: "mocha", files: []string{"/lockfile.js"}},
	}
	for _, file := range []string{"WebLocksMixin", "IDBBatchAtomicVFS", "IDBMirrorVFS", "OPFSAdaptiveVFS", "OPFSAnyContextVFS", "OPFSCoopSyncVFS", "OPFSWriteAheadVFS", "sql"} {
		s = append(s, suite{name: "wa-sqlite " + file, harness: "jasmine", files: []string{"/wa-sqlite/test/" + file + ".test.js"}})
	}
	return s
}()

// hurried reports whether a test needs a lock within 5 ms, which a file cannot guarantee. Its result is shown but not
// counted.
func hurried(l locks, test string) bool {
	return l.Strategy == "file-lock" && strings.HasPrefix(test, "WebLocksMixin") && strings.Contains(test, "should timeout")
}

type result struct {
	Name    string  `json:"name"`
	MS      float64 `json:"ms"`
	Failure string  `json:"failure"`
}

// Each test that passes with the browser's own locks runs and passes with Holdfast's.
func TestStrangers(t *testing.T) {
	if *dir == "" {
		t.Skip("no -sources; run make strangers DIR=")
	}
	chromium := browser.Start(t, browser.Options{})
	broken := map[string]bool{}     // also without Holdfast
	passes := map[string][]string{} // of each suite, without Holdfast
	var table strings.Builder
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			for _, s := range suites {
				t.Run(s.name, func(t *testing.T) {
					results := run(t, chromium, l, s)
					passed, slowest, ran := 0, result{}, map[string]bool{}
					for _, r := range results {
						name := s.name + ": " + r.Name
						ran[r.Name] = true
						switch {
						case r.Failure == "":
							passed++
							if l.Strategy == "" {
								passes[s.name] = append(passes[s.name], r.Name)
							}
						case l.Strategy == "":
							broken[name] = true
							t.Logf("%s fails without Holdfast too: %s", r.Name, r.Failure)
						case broken[name], hurried(l, r.Name):
							t.Logf("%s: %s", r.Name, r.Failure)
						default:
							assert.Fail(t, r.Name, r.Failure)
						}
						if r.MS > slowest.MS {
							slowest = r
						}
					}
					for _, name := range passes[s.name] {
						assert.True(t, ran[name], "%s did not run", name)
					}
					fmt.Fprintf(&table, "| %s | %s | %d of %d | %.1f s: %s |\n", s.name, l.name, passed, len(results), slowest.MS/1000, slowest.Name)
				})
			}
		})
	}
	t.Log("\n" + table.String())
}

func run(t *testing.T, chromium *browser.Browser, l locks, s suite) (results []result) {
	t.Helper()
	if s.harness == "jasmine" {
		s.grep = *grep
	}
	l.Root = strings.ReplaceAll(l.name+" "+s.name, " ", "-")
	server := serve(t, l, s)
	tab := chromium.Open(t, server.URL("/suite"))
	defer tab.Close()
	require.NoError(t, tab.Wait("globalThis.results", *limit), "%v", tab.Console())
	results = browser.Get[[]result](tab, "results")
	require.NotEmpty(t, results)
	return results
}
