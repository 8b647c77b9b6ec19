package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// folder is the content of a document's folder, by "index/…" and "history/…".
type folder map[string][]byte

// shown is a generation and its content. It has neither if it is certain that nothing was saved.
type shown struct {
	Base    string `json:"base"`
	Content []byte `json:"content"`
}

// nothing is what a reader returns that is certain that nothing was saved.
var nothing = &shown{}

// reads gives a page the reader in JavaScript. `read` returns its result for each of several folders, which are files
// of the browser, or objects that look like files.
const reads = `{
const {saved, folderOf} = await import('/saved.js')
const storage = navigator.storage.getDirectory.bind(navigator.storage)
const bytes = text => Uint8Array.from(atob(text ?? ''), c => c.charCodeAt(0))
const missing = () => Promise.reject(new DOMException('there is no such file', 'NotFoundError'))
const faked = files => {
	const folder = prefix => ({
		getDirectoryHandle: async name => folder(prefix + name + '/'),
		getFileHandle: async name => files[prefix + name] === undefined ? missing() : {getFile: async () => new File([bytes(files[prefix + name])], name)},
		keys: async function* () { for (const path of Object.keys(files)) if (path.startsWith(prefix)) yield path.slice(prefix.length) },
	})
	return {getDirectoryHandle: async () => folder('')}
}
const written = async (name, files) => {
	const root = await (await storage()).getDirectoryHandle(name, {create: true})
	for (const sub of ['index', 'history']) await root.getDirectoryHandle(sub, {create: true})
	for (const [path, content] of Object.entries(files)) {
		const [sub, file] = path.split('/')
		const stream = await (await (await root.getDirectoryHandle(sub)).getFileHandle(file, {create: true})).createWritable()
		await stream.write(bytes(content))
		await stream.close()
	}
}
globalThis.read = async (folders, real) => {
	const all = []
	for (const files of folders) {
		const name = 'early ' + crypto.randomUUID()
		if (real) await written(name, files)
		else Object.defineProperty(navigator.storage, 'getDirectory', {configurable: true, value: async () => faked(files)})
		const found = await saved(name).catch(() => undefined)
		delete navigator.storage.getDirectory
		all.push(found ? {base: found.base, content: btoa(String.fromCharCode(...found.content))} : found === null ? {} : null)
	}
	return all
}
globalThis.folderOf = folderOf
}
null`

// openReader opens a page with the reader.
func openReader(t *testing.T) *browser.Tab {
	t.Helper()
	mux := pages(t, siteDir)
	mux.HandleFunc("/saved.js", func(w http.ResponseWriter, r *http.Request) {
		static.SecurityHeaders(w.Header())
		http.ServeFile(w, r, "../../opfs/saved.js")
	})
	w := world{browser.Start(t, quick), browser.Serve(t, mux)}
	tab := w.Open(t, w.URL("/blank"))
	tab.MustEval(reads, nil)
	return tab
}

// read returns the results of the reader in JavaScript.
func read(t *testing.T, tab *browser.Tab, folders []folder, real bool) (all []*shown) {
	t.Helper()
	for part := range slices.Chunk(folders, 100) {
		arg, err := json.Marshal(part)
		require.NoError(t, err)
		all = append(all, browser.Get[[]*shown](tab, fmt.Sprintf("await read(%s, %t)", arg, real))...)
	}
	return all
}

// disk returns the folder as a storage in memory.
func (f folder) disk(t *testing.T) *autosavetest.Disk {
	t.Helper()
	d := autosavetest.NewDisk()
	for path, content := range f {
		sub, name, _ := strings.Cut(path, "/")
		require.NoError(t, d.Stepped(nil).Write(t.Context(), sub, name, content))
	}
	return d
}

// filesOf returns the files of a storage in memory.
func filesOf(t *testing.T, d *autosavetest.Disk) folder {
	t.Helper()
	f := folder{}
	for _, path := range d.Paths() {
		sub, name, _ := strings.Cut(path, "/")
		content, err := d.Stepped(nil).Read(t.Context(), sub, name)
		require.NoError(t, err)
		f[path] = content
	}
	return f
}

// loads returns what Go loads from the folder: a page that may not edit, and one that has just got the lock. It is
// nothing if Go lists no generation, and nil if the current one cannot be read.
func (f folder) loads(t *testing.T) (viewer, editor *shown) {
	t.Helper()
	current := func(l *autosave.Layout) *shown {
		all, err := l.List(t.Context())
		if err == nil && len(all) == 0 {
			return nothing
		}
		if err != nil || !all[0].Current {
			return nil
		}
		content, err := l.Read(t.Context(), all[0].ID)
		if err != nil {
			return nil
		}
		return &shown{all[0].ID, content}
	}
	viewer = current(autosave.NewLayout(f.disk(t).Client(), autosavetest.SHA256))
	l := autosave.NewLayout(f.disk(t).Client(), autosavetest.SHA256)
	if err := l.Fence(t.Context(), 999_999_999_999_999_999); err != nil {
		return viewer, nil
	}
	return viewer, current(l)
}

// edited returns the folder of a document that two pages have edited, with the files that are made in advance.
func edited(t *testing.T) folder {
	t.Helper()
	d := autosavetest.NewDisk()
	for token := range int64(2) {
		l := autosave.NewLayout(d.Client(), autosavetest.SHA256)
		for n := range int64(3) {
			_, err := l.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(fmt.Sprintf("text %d%d", token, n)), Token: token + 1,
				SavedAt: time.UnixMilli(1_700_000_000_000 + n), Draft: "d-ü", Number: n + 1, OwnerName: `A "quoted" \name` + "\n"})
			require.NoError(t, err)
			if n == 1 {
				_, err := l.Pin(t.Context(), token+1, autosave.Current, "kept\x01")
				require.NoError(t, err)
			}
		}
	}
	return filesOf(t, d)
}

// newest returns the path of the highest file of a folder that is not empty, or of the one that is.
func (f folder) newest(sub string, empty bool) string {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(f)), func(path string) bool {
		return !strings.HasPrefix(path, sub+"/") || (len(f[path]) == 0) != empty
	})
	return paths[len(paths)-1]
}

// respelled replaces a part of an index and gives it a right checksum.
func respelled(index []byte, before, after string) []byte {
	text, _, _ := bytes.Cut(index, []byte(`],"crc32":`))
	text = bytes.Replace(text, []byte(before), []byte(after), 1)
	return fmt.Appendf(text, "],\"crc32\":\"%08x\"}\n", crc32.ChecksumIEEE(text))
}

// The reader in JavaScript shows what Go loads, and nothing where a file is damaged or of another program.
func TestEarlyReader(t *testing.T) {
	t.Parallel()
	base := edited(t)
	index, content := base.newest("index", false), base.newest("history", false)
	spare, made := base.newest("index", true), base.newest("history", true)
	cases := append(changedFolders(index, spare, content, made), respelledIndexes(t, index)...)
	var folders []folder
	for _, c := range cases {
		f := maps.Clone(base)
		c.change(f)
		folders = append(folders, f)
	}
	for i, got := range read(t, openReader(t), folders, true) {
		viewer, editor := folders[i].loads(t)
		switch cases[i].shows {
		case same:
			require.NotNil(t, editor, cases[i].name)
			assert.NotEqual(t, nothing, editor, cases[i].name)
			assert.Equal(t, editor, got, cases[i].name)
		case none:
			assert.Equal(t, nothing, got, cases[i].name)
		case unsure:
			assert.Nil(t, got, cases[i].name)
		}
		agrees(t, cases[i].name, got, viewer, editor)
	}
}

// agrees asserts that a page which has seen the preview is given the same content afterwards.
func agrees(t *testing.T, name string, got, viewer, editor *shown) {
	t.Helper()
	if got != nil {
		assert.Equal(t, editor, got, "%s: the next editor", name)
		assert.Equal(t, viewer, got, "%s: a page that may not edit", name)
	}
}

// Old formats are shown too.
func TestEarlyReaderOfOldFormats(t *testing.T) {
	t.Parallel()
	base := edited(t)
	index := base.newest("index", false)
	third := regexp.MustCompile(`,"(draft|ownerName|name)":"(\\.|[^"])*"|,"number":\d+`)
	second := regexp.MustCompile(`,"savedAt":\d+`)
	var folders []folder
	for format, pieces := range map[int][]*regexp.Regexp{2: {third}, 1: {third, second}} {
		f := maps.Clone(base)
		for _, piece := range pieces {
			f[index] = piece.ReplaceAll(f[index], nil)
		}
		f[index] = respelled(f[index], `"format":3`, fmt.Sprint(`"format":`, format))
		folders = append(folders, f)
	}
	for i, got := range read(t, openReader(t), folders, true) {
		_, editor := folders[i].loads(t)
		require.NotNil(t, editor)
		assert.Equal(t, editor, got)
	}
}

// random returns the folder of a document after random edits, of which some are killed, and random damage. It also
// returns whether nothing was killed or damaged.
func random(t *testing.T, r *rand.Rand) (f folder, sound bool) {
	t.Helper()
	sound = r.IntN(4) == 0
	d := autosavetest.NewDisk()
	for token := range int64(1 + r.IntN(3)) {
		left := r.IntN(60)
		files := d.Stepped(func(string) autosavetest.Fault {
			if left--; left >= 0 || sound {
				return 0
			}
			return autosavetest.Faults[int(token)%len(autosavetest.Faults)]
		})
		l := autosave.NewLayout(autosavetest.NewClient(files), autosavetest.SHA256)
		for n := range int64(1 + r.IntN(4)) {
			_, err := l.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(fmt.Sprint("text ", token, n)), Token: token + 1,
				SavedAt: time.UnixMilli(1000 + int64(r.IntN(4))), Aside: r.IntN(4) == 0, Limits: autosave.Limits{MaxGenerations: 1 + r.IntN(4)}})
			if err != nil {
				break
			}
		}
	}
	f = filesOf(t, d)
	for range r.IntN(3) {
		paths := slices.Sorted(maps.Keys(f))
		if sound || len(paths) == 0 {
			break
		}
		damage(f, paths[r.IntN(len(paths))], paths[r.IntN(len(paths))], r)
	}
	return f, sound
}

// damage changes a file, with or without another one.
func damage(f folder, path, other string, r *rand.Rand) {
	content := slices.Clone(f[path])
	switch n := len(content); r.IntN(6) {
	case 0:
		delete(f, path)
	case 1:
		f[path] = nil
	case 2:
		f[path] = content[:r.IntN(n+1)]
	case 3:
		if n > 0 {
			content[r.IntN(n)] ^= 1 << r.IntN(8)
			f[path] = content
		}
	case 4:
		f[path] = f[other]
	case 5:
		name := fmt.Sprint(1000+r.IntN(4), "-", 1+r.IntN(3))
		f["history/"+name], f["index/"+fmt.Sprint(1+r.IntN(4), "-", r.IntN(9))+".json"] = f[other], content
	}
}

// After any change of the files, the reader in JavaScript shows nothing that Go would not load.
func TestEarlyReaderShowsOnlyWhatGoLoads(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var folders []folder
	var sound []bool
	for range 600 {
		f, whole := random(t, r)
		folders, sound = append(folders, f), append(sound, whole)
	}
	showed, silent := 0, 0
	for i, got := range read(t, openReader(t), folders, false) {
		viewer, editor := folders[i].loads(t)
		agrees(t, fmt.Sprint("folder ", i), got, viewer, editor)
		switch {
		case sound[i]:
			assert.Equal(t, editor, got, "folder %d is sound", i)
		case got != nil && got.Base != "":
			showed++
		case editor != nil && editor.Base != "":
			silent++
		}
	}
	t.Logf("of the damaged folders, %d showed a preview, and %d did not although Go has a content", showed, silent)
	assert.Greater(t, showed, 100)
}

// Both programs look in the same folder.
func TestEarlyReaderFindsTheFolder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä/B ", 60)
	paths := [][]string{{}, {"a"}, {"user", "account", "Resource-1_x"}, {"ü", "a+b", "~", "=", "/", "\x00"}, {long, "x"}, {strings.Repeat("y", 200)}, {strings.Repeat("y", 201)}}
	servers := []string{"", "https://example.org", "http://localhost:8080/some/path", "https://example.org/" + long, "https://h/" + strings.Repeat("y", 198), "https://h/" + strings.Repeat("y", 199), "https://h/" + strings.Repeat("y", 900)}
	tab := openReader(t)
	for _, server := range servers {
		for _, path := range paths {
			want := "team/project"
			if server != "" {
				want += "/" + remote.NewDocument(remote.Config{URL: server}).Folder()
			}
			if sub := autosave.Folder(path); sub != "" {
				want += "/" + sub
			}
			arg, err := json.Marshal([]any{"team/project", server, path})
			require.NoError(t, err)
			assert.Equal(t, want+"/autosave", browser.Get[string](tab, fmt.Sprintf("folderOf(...%s)", arg)))
		}
	}
}
