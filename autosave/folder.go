package autosave

import (
	"strings"

	"github.com/holdfast-dev/holdfast/lock"
)

// chunk is the maximum length of a folder name in bytes, without its mark. File systems allow 255.
const chunk = 200

// Folder returns the folder of a document, below the folder of its project and storage. It is "" for the project
// itself. Otherwise it consists of folders separated by slashes, and the first one is "documents". Different paths have
// different folders, even on file systems that ignore case or change Unicode. No document's folder is a place where
// another document keeps files.
//
// In a name, the letters a to z, digits, "-" and "_" stay. "+" separates components. Every other byte is "~" and two hexadecimal digits.
// A long name is split. Each part begins with "=", which no file or folder of a document does.
func Folder(path []string) string {
	if len(path) == 0 {
		return ""
	}
	name := spelled(path)
	var b strings.Builder
	b.WriteString("documents")
	for len(name) > 0 {
		n := min(chunk, len(name))
		b.WriteString("/=")
		b.WriteString(name[:n])
		name = name[n:]
	}
	return b.String()
}

// spelled returns the components of a path as one name.
func spelled(path []string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i, component := range path {
		if i > 0 {
			b.WriteByte('+')
		}
		for i := range len(component) {
			c := component[i]
			if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
				b.WriteByte(c)
			} else {
				b.WriteByte('~')
				b.WriteByte(hex[c>>4])
				b.WriteByte(hex[c&15])
			}
		}
	}
	return b.String()
}

// CheckDocument reports options of the lock that a document cannot have. The error matches ErrInvalidArgument.
func CheckDocument(o lock.AcquireOptions) error {
	if err := checkDocument(o); err != nil {
		return err
	}
	return nil
}

func checkDocument(o lock.AcquireOptions) *Error {
	invalid := func(what string) *Error { return &Error{Code: CodeInvalidArgument, Detail: what} }
	switch {
	case o.Paths != nil:
		return invalid("lock.paths cannot be used: a document is one path; give it as path")
	case o.Slots != 0:
		return invalid("lock.slots cannot be used: a document has one editor")
	case o.Mode == lock.Shared:
		return invalid(`lock.mode must be "exclusive": a document has one editor`)
	}
	if err := lock.CheckPath(o.Path); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// keepsFromEditing reports whether a holder keeps others from editing a document: it locks the document, or one around or below it. Of the
// leases of the page itself, only those below do: the page may take the document within one around it.
func keepsFromEditing(h lock.Holder, document string, own bool) bool {
	if h.Mode != lock.Exclusive {
		return false
	}
	for _, path := range h.Paths {
		if name := lock.Name("", path); related(name, document) && (!own || len(name) > len(document)) {
			return true
		}
	}
	return !own && related(h.Excludes, document)
}

// related reports whether one of two documents equals the other one, or is around it. Their names are those of
// lock.Name.
func related(a, b string) bool {
	a, b = a+"/", b+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
