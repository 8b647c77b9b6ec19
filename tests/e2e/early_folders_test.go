package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reader is unsure about a folder, or shows the same as Go, or that there is nothing.
const unsure, same, none = 0, 1, 2

type readerCase struct {
	name   string
	shows  int
	change func(f folder)
}

// changedFolders has changes of a folder whose newest index and content have these paths. Spare and made are the files made in advance.
func changedFolders(index, spare, content, made string) []readerCase {
	return []readerCase{
		{"whole", same, func(folder) {}},
		{"no files made in advance", same, func(f folder) { delete(f, spare); delete(f, made) }},
		{"content without a seal", same, func(f folder) { f[content] = []byte("text 12") }},
		{"other files", same, func(f folder) {
			f["index/note.txt"], f["history/01-2"], f["index/01-2.json"] = []byte("x"), []byte("x"), []byte("x")
		}},
		{"empty", none, func(f folder) { clear(f) }},
		{"only files made in advance", none, func(f folder) {
			maps.DeleteFunc(f, func(_ string, content []byte) bool { return len(content) > 0 })
		}},
		{"newest index missing", same, func(f folder) { delete(f, index); delete(f, spare) }},
		{"no index", unsure, func(f folder) {
			maps.DeleteFunc(f, func(path string, _ []byte) bool { return strings.HasPrefix(path, "index/") })
		}},
		{"index cut", unsure, func(f folder) { f[index] = f[index][:len(f[index])/2] }},
		{"index empty", unsure, func(f folder) { f[index] = nil }},
		{"content cut", unsure, func(f folder) { f[content] = f[content][:3] }},
		{"content empty", unsure, func(f folder) { f[content] = nil }},
		{"content missing", unsure, func(f folder) { delete(f, content) }},
		{"content changed", unsure, func(f folder) { f[content] = append([]byte("T"), f[content][1:]...) }},
		{"newer content beside an empty index", unsure, func(f folder) { f[made] = f[content] }},
		{"number too large for JavaScript", unsure, func(f folder) { f["index/900000000000000000-1.json"] = f[index] }},
	}
}

var respellings = []struct{ before, after string }{
	{`"format":3`, `"format":4`}, {`"format":3`, `"format":0`}, {`"format":3`, `"format":2`}, {`"format":3`, `"format": 3`},
	{`"number":1`, `"number":01`}, {`"number":1`, `"number":0`}, {`"draft":"d-ü"`, `"draft":""`}, {`d-ü`, "d-\xff"}, {`d-ü`, `d-\u00fc`}, {`d-ü`, "d\t"}, {`d-ü`, `\u0044`},
	{`"sha256":"`, `"sha256":"A`}, {`,"bytes"`, `,"Bytes"`}, {`"generations":[`, `"generations":[,`}, {`{"id"`, ` {"id"`}, {`\u000a`, `\u000A`}, {`\"quoted`, `\u0022quoted`},
	{`"savedAt":1700000000000`, `"savedAt":1700000000000000000000`}, {`{"format"`, "\ufeff{\"format\""},
}

// respelledIndexes changes the spelling of the newest index. The reader is unsure about each.
func respelledIndexes(t *testing.T, index string) (cases []readerCase) {
	for _, s := range respellings {
		cases = append(cases, readerCase{s.before + " as " + s.after, unsure, func(f folder) {
			was := string(f[index])
			f[index] = respelled(f[index], s.before, s.after)
			require.NotEqual(t, was, string(f[index]))
		}})
	}
	return cases
}
