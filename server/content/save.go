package content

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// ErrStaleSave means that a later save under the same token is stored.
var ErrStaleSave = errors.New("a later save of this lock is stored")

// Save says which save a write is. The zero value says nothing.
type Save struct {
	// Draft names the text that the client edits, Number the snapshot of it. Of the snapshots of one draft, a later one
	// has a higher number.
	Draft  string
	Number int64
	// Order counts the writes that the client has sent under one token; 0 is none. It orders writes of different drafts.
	Order int64
}

var draftPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseSave reads a draft and a number as String writes them.
func ParseSave(text string) (Save, bool) {
	draft, digits, _ := strings.Cut(text, "/")
	number, err := strconv.ParseInt(digits, 10, 64)
	return Save{Draft: draft, Number: number}, err == nil && number >= 0 && draftPattern.MatchString(draft)
}

// String writes the draft and the number; it is empty where there is no draft.
func (s Save) String() string {
	if s.Draft == "" {
		return ""
	}
	return s.Draft + "/" + strconv.FormatInt(s.Number, 10)
}

// follow reports whether the save is the one before, which is stored, and fails with [ErrStaleSave] when it is older.
func (d *description) follow(before description) (stored bool, err error) {
	if d.Token != before.Token {
		return false, nil
	}
	sameDraft := d.Draft != "" && d.Draft == before.Draft
	same := d.ETag == before.ETag && d.Size == before.Size
	switch {
	case d.Order != 0 && d.Order < before.Order, sameDraft && d.Number < before.Number:
		return false, ErrStaleSave
	case d.Order != 0 && d.Order == before.Order, sameDraft && d.Number == before.Number:
		if !same {
			return false, ErrStaleSave // one number is one text
		}
		return true, nil
	case d.Order == 0:
		d.Order = before.Order
	}
	return false, nil
}
