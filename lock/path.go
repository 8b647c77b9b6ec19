package lock

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxName is the maximum length in bytes of the name of a path, as [Name] spells it without the project's own name.
const MaxName = 1024

// MaxSlots is the maximum of AcquireOptions.Slots.
const MaxSlots = 256

// A UserPath is the place of a user in the project's tree; see [User].
type UserPath []string

// An AccountPath is the place of one account of a user.
type AccountPath []string

// A ResourcePath is the place of one resource of an account.
type ResourcePath []string

// User returns the place of a user, for AcquireOptions.Path. Locking it excludes others from everything of that user.
func User(id string) UserPath { return UserPath{id} }

// Account returns the place of one of the user's accounts.
func (p UserPath) Account(id string) AccountPath { return AccountPath(child(p, id)) }

// Resource returns the place of one of the account's resources.
func (p AccountPath) Resource(id string) ResourcePath { return ResourcePath(child(p, id)) }

// Resources returns the places of several resources of the account, for
// AcquireOptions.Paths.
func (p AccountPath) Resources(ids ...string) [][]string {
	paths := make([][]string, len(ids))
	for i, id := range ids {
		paths[i] = child(p, id)
	}
	return paths
}

func child(path []string, id string) []string { return append(slices.Clone(path), id) }

// Name returns the name of a place for a Locker. For the empty path, it is the project's name. Otherwise it is the
// project's name, two slashes, and the components with a slash between them. In a component, "%", "/" and control
// characters are escaped as in a URL. So different paths never share a name, and the name of an ancestor is a prefix of
// the names below it.
func Name(project string, path []string) string {
	var b strings.Builder
	b.WriteString(project)
	for i, component := range path {
		b.WriteByte('/')
		if i == 0 {
			b.WriteByte('/')
		}
		escape(&b, component)
	}
	return b.String()
}

// slotName is the name of a slot of the place, or of the line in which its waiters queue. No path has this name: two
// slashes come once in the name of a path.
func slotName(place string, root bool, slot int) string {
	if root {
		place += "//"
	}
	if slot < 0 {
		return place + "//line"
	}
	return place + "//" + strconv.Itoa(slot)
}

func escape(b *strings.Builder, component string) {
	const hex = "0123456789ABCDEF"
	for i := range len(component) {
		if c := component[i]; c == '%' || c == '/' || c < ' ' || c == 0x7f {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
}

// CheckPath reports a path that cannot be locked. The error matches ErrInvalidArgument.
func CheckPath(path []string) error {
	if err := checkPath("path", path); err != nil {
		return err
	}
	return nil
}

// checkPath reports a path that cannot be locked.
func checkPath(option string, path []string) *Error {
	for _, component := range path {
		switch {
		case component == "":
			return invalid(option, "must not have an empty component")
		case !utf8.ValidString(component):
			return invalid(option, "must be of valid text")
		}
	}
	if len(Name("", path)) > MaxName {
		return invalid(option, "is too long: its name must not exceed "+strconv.Itoa(MaxName)+" bytes")
	}
	return nil
}

// places returns the places to lock.
func (o *AcquireOptions) places() [][]string {
	if o.Paths != nil {
		return o.Paths
	}
	return [][]string{o.Path}
}

// checkTree reports options about places that cannot be used.
func (o *AcquireOptions) checkTree() *Error {
	switch {
	case o.Paths != nil && len(o.Path) > 0:
		return invalid("path", "cannot be combined with paths")
	case o.Paths != nil && len(o.Paths) == 0:
		return invalid("paths", "must not be empty")
	case o.Slots < 0 || o.Slots > MaxSlots:
		return invalid("slots", "must be from 1 to "+strconv.Itoa(MaxSlots))
	case o.Slots > 1 && o.Mode == Shared:
		return invalid("slots", `needs mode "exclusive": shared locks admit any number of holders`)
	case o.Slots > 1 && o.Steal:
		return invalid("slots", "cannot be combined with steal")
	case o.Slots > 1 && len(o.Paths) > 1:
		return invalid("slots", "cannot be combined with several paths")
	}
	if err := checkPath("path", o.Path); err != nil {
		return err
	}
	for _, path := range o.Paths {
		if err := checkPath("paths", path); err != nil {
			return err
		}
	}
	return nil
}

// wants returns the names to lock for the places: their ancestors, the project included, shared, and the places
// themselves in the mode. Each name comes once, in the global order, in which an ancestor comes before its descendants.
// Descendants of a place that is locked exclusively are left out: nobody else can hold them.
func wants(project string, places [][]string, mode Mode) (merged []Want) {
	// As text: the name, and a mode that sorts exclusive first. Each is inserted in order, because the library's
	// functions for this are large.
	var all []string
	add := func(place []string, mode Mode) {
		text := Name(project, place) + "\x00" + string(mode)
		at := 0
		for at < len(all) && all[at] < text {
			at++
		}
		if at == len(all) || all[at] != text {
			all = append(all, "")
			copy(all[at+1:], all[at:])
			all[at] = text
		}
	}
	for _, place := range places {
		for depth := range place {
			add(place[:depth], Shared)
		}
		add(place, mode)
	}
	for _, text := range all {
		name, mode, _ := strings.Cut(text, "\x00")
		if !covered(project, merged, name) {
			merged = append(merged, Want{name, Mode(mode)})
		}
	}
	return merged
}

// covered reports whether a name is among wants, or below an exclusive one.
func covered(project string, wants []Want, name string) bool {
	for _, w := range wants {
		if w.Name == name || w.Mode == Exclusive && above(project, w.Name, name) {
			return true
		}
	}
	return false
}

// above reports whether one place contains another.
func above(project, place, other string) bool {
	return len(other) > len(place) && strings.HasPrefix(other, place) && (place == project || other[len(place)] == '/')
}
