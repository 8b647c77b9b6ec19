package engines

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/marked"
)

const (
	siteFolder = "../../web/site"
	document   = "../../docs/engines.md"
	openMark   = "<!-- measured -->"
	closeMark  = "<!-- end of measured -->"
)

var update = flag.Bool("update", false, "write what was measured into "+document)

// scenarios test the package in every engine and host.
var scenarios = []struct {
	name string
	play func(*stage)
}{
	{"open", testOpen},
	{"sequence", testSequence},
	{"handover on release", testHandoverOnRelease},
	{"handover on close", testHandoverOnClose},
	{"handover on reload", testHandoverOnReload},
	{"handover on kill", testHandoverOnKill},
	{"refusals", testRefusals},
	{"steal", testSteal},
	{"withProjectLock", testWith},
	{"inspect", testInspect},
	{"close", testClose},
	{"asyncDispose", testDispose},
	{"AutoSave", testAutoSave},
	{"AutoSave before the Wasm", testEarly},
	{"modules again", testModulesAgain},
	{"AutoSave drafts", testAutoSaveDrafts},
	{"AutoSave killed", testAutoSaveKilled},
	{"insecure origin", testInsecure},
	{"content security policy", testPolicy},
	{"wrong MIME type", testMIME},
	{"record", testRecord},
	{"file lease", testFileLease},
	{"file handover on close", testFileClose},
	{"file handover on reload", testFileReload},
	{"file handover on navigation", testFileNavigate},
	{"file handover on kill", testFileKill},
	{"file damage", testFileDamage},
	{"tree", testTree},
	{"file tree", testFileTree},
	{"service closed", testServiceClosed},
	{"service killed", testServiceKilled},
	{"service port", testServicePort},
}

// TestEngines plays every scenario in every engine, one browser at a time, and measures the capabilities of each. With
// -full or -update, each scenario runs in both hosts. Otherwise it runs in one host, which is another one in the next engine.
func TestEngines(t *testing.T) {
	if !*update { // what is measured is measured alone
		t.Parallel()
	}
	rows, figures := make([]Row, len(All)), make([][]Figures, len(All))
	t.Run("all", func(t *testing.T) { // which ends when all brands have
		for i, brand := range All {
			t.Run(brand.Name, func(t *testing.T) {
				if !*full && !*update {
					t.Parallel()
				}
				rows[i], figures[i] = playAll(t, brand, i)
			})
		}
	})
	measured := "\n" + Markdown(rows) + "\n" + FiguresMarkdown(slices.Concat(figures...))
	t.Log(measured)
	if !t.Failed() && *update {
		require.NoError(t, marked.Replace(document, openMark, closeMark, measured))
	}
}

func playAll(t *testing.T, brand Brand, number int) (row Row, figures []Figures) {
	site := Serve(t, siteFolder)
	engine := launch(t, brand.Start, Options{InsecureProxy: site.Address()})
	took := map[string]float64{}
	play := func(host, name string, scenario func(*stage)) {
		t.Run(host+"/"+name, func(t *testing.T) {
			root := strings.ReplaceAll(host+" "+name, " ", "-")
			s := &stage{T: t, engine: engine, engineName: brand.Name, site: site, host: host, root: root, took: took}
			s.play(scenario)
		})
	}
	row.Engine = brand.Name
	play("page", "clocks", testClocks)
	play("page", "controls", testControls)
	play("page", "capabilities", func(s *stage) { row.Has = probe(s) })
	row.Version = engine.Version()
	for h, host := range []string{"worker", "page"} {
		took = map[string]float64{}
		for i, scenario := range scenarios {
			if *full || *update || (i+h+number)%2 == 0 {
				play(host, scenario.name, scenario.play)
			}
		}
		figures = append(figures, Figures{brand.Name, host, took})
	}
	return row, figures
}

// The table in the documentation matches that of capabilities.go, which TestEngines compares with its measurements.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, e := range All {
		row := Row{Engine: e.Name, Version: "version", Has: Known[e.Name]}
		lines := strings.Split(Markdown([]Row{row}), "\n")
		assert.Contains(t, string(data), lines[0], "its head")
		want := strings.ReplaceAll(regexp.QuoteMeta(lines[2]), "version", "[^|]+")
		assert.Regexp(t, want, string(data), "run go test ./tests/engines -update")
	}
}

// write writes the measurements between the marks of the document.
func launch(t *testing.T, start func(testing.TB, Options) (Engine, error), options Options) Engine {
	t.Helper()
	engine, err := start(t, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, engine.Quit()) })
	return engine
}

// probe measures the capabilities of an engine, and fails the test if the table in the code differs.
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
	note("AutoSave", get[string](p, `await openHoldfast(`+s.options("")+`).then(async hf => {
		const autosave = await hf.initAutoSave(() => "text")
		autosave.markDirty()
		await autosave.flushNow()
		const { storage } = autosave.state()
		await hf.close()
		return "yes; in " + storage
	}).catch(String)`))
	assert.Equal(s, Known[s.engineName], found, "the table in capabilities.go")
	return found
}
