package locks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// [Document] and [Path.Document] are inverse functions.
func TestDocumentIsAPath(t *testing.T) {
	for id, path := range map[string]Path{
		"plan":            {"documents", "plan"},
		"plan~.part~201":  {"documents", "plan", "part 1"},
		"a~2Fb~.x~.y.z-_": {"documents", "a~2Fb", "x", "y.z-_"},
		"plan~.~E3~81~82": {"documents", "plan", "あ"},
		"plan~.~7E.":      {"documents", "plan", "~."},
		"plan~.":          {"documents", "plan~."},
		"~.x":             {"documents", "~.x"},
		"plan~.a~61":      {"documents", "plan~.a~61"}, // not the canonical spelling
		"plan~.~2f":       {"documents", "plan~.~2f"},
		"plan~.a~":        {"documents", "plan~.a~"},
		"plan~.x~.":       {"documents", "plan~.x~."},
		"A-Z.a_z~0-9":     {"documents", "A-Z.a_z~0-9"},
		"plan~.a~.b~.c~.d~.e~.f~.g~.h~.i~.j~.k~.l~.m~.n~.o": {"documents", "plan~.a~.b~.c~.d~.e~.f~.g~.h~.i~.j~.k~.l~.m~.n~.o"}, // too deep
	} {
		assert.Equal(t, path, Document(id), id)
		document, ok := path.Document()
		assert.True(t, ok, id)
		assert.Equal(t, id, document)
	}
	for _, path := range []Path{{"documents"}, {"leases", "x"}, {"documents", "plan", strings.Repeat("x", 125)}, {"x", "plan", "y"}, {"documents", "plan~.a", "b"}, {"documents", "plan~.a"}} {
		_, ok := path.Document()
		assert.False(t, ok, path)
	}
}
