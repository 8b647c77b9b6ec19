package locks

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/document"
)

const (
	maxDepth     = 16
	maxPaths     = 16
	maxComponent = document.MaxComponent // bytes
	maxSlots     = 1000
)

// Path is a place in the tree: its components from the root down.
type Path []string

const documents = "documents"

// Document returns the path of the document with this id. A document of a project with several documents lies below
// the project's path, so that the lock of the project and that of the document exclude each other. Package document spells
// such ids.
func Document(id string) Path { return append(Path{documents}, document.Path(id)...) }

// AllDocuments reports whether a path is the parent of all documents.
func AllDocuments(p Path) bool { return len(p) == 1 && p[0] == documents }

// Document returns the id of the document with this path.
func (p Path) Document() (string, bool) {
	if len(p) == 2 && p[0] == documents {
		return p[1], slices.Equal(Document(p[1]), p)
	}
	id, ok := p.spell()
	return id, ok && slices.Equal(Document(id), p)
}

// spell returns the document id of the path.
func (p Path) spell() (string, bool) {
	if len(p) < 2 || p[0] != documents {
		return "", false
	}
	return document.ID(p[1:])
}

// String joins the encoded components with slashes. No two paths have the same string.
func (p Path) String() string { return string(p.append(make([]byte, 0, usualKey))) }

// usualKey is the capacity for a key of a document, in bytes.
const usualKey = 128

func (p Path) append(text []byte) []byte {
	for i, component := range p {
		if i > 0 {
			text = append(text, '/')
		}
		// QueryEscape keeps letters, digits and -_.~ unchanged. No encoded component begins with "!".
		text = append(text, strings.ReplaceAll(url.QueryEscape(component), "+", "%20")...)
	}
	return text
}

func samePaths(a, b []Path) bool {
	return slices.EqualFunc(a, b, func(p, q Path) bool { return slices.Equal(p, q) })
}

func (p Path) check() error {
	if len(p) == 0 || len(p) > maxDepth {
		return &InvalidError{fmt.Sprintf("a path has 1 to %d components", maxDepth)}
	}
	for _, component := range p {
		if component == "" || len(component) > maxComponent || !utf8.ValidString(component) {
			return &InvalidError{fmt.Sprintf("a component of a path has 1 to %d bytes and is UTF-8", maxComponent)}
		}
	}
	return nil
}

// ancestors returns the paths above p, shortest first.
func (p Path) ancestors() []Path {
	var list []Path
	for i := 1; i < len(p); i++ {
		list = append(list, p[:i])
	}
	return list
}

// covers reports whether q is p or below it.
func (p Path) covers(q Path) bool {
	return len(p) <= len(q) && slices.Equal(p, q[:len(p)])
}

// cover reports whether one of the paths covers one of the others.
func cover(paths, others []Path) bool {
	return slices.ContainsFunc(paths, func(p Path) bool { return slices.ContainsFunc(others, p.covers) })
}

// merged returns the paths in the global order, each once. In an exclusive request it omits paths below another path
// of the request, because their ancestor covers them.
func merged(paths []Path, mode Mode) []Path {
	list := slices.Clone(paths)
	slices.SortFunc(list, func(a, b Path) int { return slices.Compare(a, b) })
	var kept []Path
	for _, p := range list {
		if len(kept) > 0 {
			last := kept[len(kept)-1] // the list is sorted: an ancestor comes before everything below it
			if slices.Equal(last, p) || mode == Exclusive && last.covers(p) {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}
