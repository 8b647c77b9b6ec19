package engines

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	siteFolder = "../../web/site"
	document   = "../../docs/engines.md"
)

var update = flag.Bool("update", false, "write the table of engines into "+document)

// scenarios are what the package does, whatever the engine and the host.
var scenarios = []struct {
	name string
	play func(*stage)
}{
	{"open", testOpen},
	{"sequence", testSequence},
	{"hand-over on release", testHandOverOnRelease},
	{"hand-over on close", testHandOverOnClose},
	{"hand-over on reload", testHandOverOnReload},
	{"hand-over on kill", testHandOverOnKill},
	{"refusals", testRefusals},
	{"steal", testSteal},
	{"withProjectLock", testWith},
	{"inspect", testInspect},
	{"close", testClose},
	{"asyncDispose", testDispose},
	{"insecure origin", testInsecure},
	{"content security policy", testPolicy},
	{"wrong MIME type", testMIME},
}

// TestEngines plays every scenario in every engine and host, one browser at a time, and measures what each has.
func TestEngines(t *testing.T) {
	var rows []Row
	for _, e := range All {
		t.Run(e.Name, func(t *testing.T) {
			site := Serve(t, siteFolder)
			engine := launch(t, e.Start, Options{InsecureProxy: site.Address()})
			play := func(host, name string, scenario func(*stage)) bool {
				return t.Run(host+"/"+name, func(t *testing.T) {
					s := &stage{T: t, engine: engine, engineName: e.Name, site: site, host: host, root: strings.ReplaceAll(host+" "+name, " ", "-")}
					s.play(scenario)
				})
			}
			row := Row{Engine: e.Name, Has: map[string]string{}}
			play("page", "clocks", testClocks)
			play("worker", "capabilities", func(s *stage) { row.Has = probe(s) })
			for _, host := range []string{"worker", "page"} {
				for _, scenario := range scenarios {
					play(host, scenario.name, scenario.play)
				}
			}
			row.Version = engine.Version()
			rows = append(rows, row)
		})
	}
	t.Run(WithStorage, func(t *testing.T) {
		site := Serve(t, siteFolder)
		engine := launch(t, startWebKit, Options{Storage: true})
		s := &stage{T: t, engine: engine, engineName: WithStorage, site: site, root: "probe"}
		s.play(func(s *stage) { rows = append(rows, Row{WithStorage, engine.Version(), probe(s)}) })
	})
	if len(rows) == len(All)+1 { // -run may have chosen some
		checkTable(t, rows)
	}
}

func launch(t *testing.T, start func(testing.TB, Options) (Engine, error), options Options) Engine {
	t.Helper()
	engine, err := start(t, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, engine.Quit()) })
	return engine
}

// probe measures what an engine has, and fails the test where the table in the code says otherwise.
func probe(s *stage) map[string]string {
	p := s.blank(s.site.URL(BlankPage))
	found := map[string]string{}
	note := func(column, answer string) {
		verdict, why, _ := strings.Cut(answer, ";")
		if verdict != "yes" {
			verdict, why = "no", answer
		}
		s.Logf("%s: %s (%s)", column, verdict, strings.TrimSpace(why))
		found[column] = verdict
	}
	note("Web Locks", get[string](p, "'locks' in navigator ? 'yes' : 'navigator.locks is missing'"))
	for column, host := range map[string]string{"Worker host": "worker", "Page host": "page"} {
		s.host = host
		note(column, get[string](p, "await openHoldfast("+s.options("")+").then(async hf => { await hf.ready; await hf.close(); return 'yes' }).catch(String)"))
	}
	note("OPFS sync access handles", get[string](p, "await new Promise(done => new Worker('"+probePath+"').onmessage = e => done(e.data))"))
	note("BroadcastChannel", get[string](p, `await new Promise(done => {
		const [from, to] = [new BroadcastChannel("probe"), new BroadcastChannel("probe")]
		to.onmessage = () => { from.close(); to.close(); done("yes") }
		from.postMessage(1) })`))
	note("Symbol.asyncDispose", get[string](p, "Symbol.asyncDispose ? 'yes' : 'it is not defined'"))
	assert.Equal(s, Known[s.engineName], found, "the table in capabilities.go")
	return found
}

// checkTable compares what was measured with the documentation, versions apart, or writes it there.
func checkTable(t *testing.T, rows []Row) {
	t.Helper()
	table := Markdown(rows)
	t.Log("\n" + table)
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), "<!-- table -->\n")
	old, after, closed := strings.Cut(rest, "<!-- end of table -->")
	require.True(t, ok && closed, "%s has no marks around its table", document)
	if *update {
		text := before + "<!-- table -->\n" + table + "<!-- end of table -->" + after
		require.NoError(t, os.WriteFile(document, []byte(text), 0o644))
		return
	}
	assert.Equal(t, withoutVersions(table), withoutVersions(old),
		"%s is out of date; run go test ./tests/engines -update", document)
}

func withoutVersions(table string) string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for i, line := range lines {
		if cells := strings.Split(line, " | "); len(cells) > 1 {
			cells[1] = ""
			lines[i] = strings.Join(cells, " | ")
		}
	}
	return strings.Join(lines, "\n")
}
