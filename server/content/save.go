package content

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// ErrStaleSave means that a later save under the same token is stored.
var ErrStaleSave = errors.New("a later save of this lock is stored")

// Save identifies a save. The zero value identifies none.
type Save struct {
	// Draft names the text that the client edits, and Number its snapshot. Later snapshots of a draft have higher
	// numbers.
	Draft  string
	Number int64
	// Order counts the writes that the client has sent under one token; 0 means unknown. It orders writes of
	// different drafts.
	Order int64
}

var draftPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseSave reads a draft and a number in the format of String.
func ParseSave(text string) (Save, bool) {
	draft, digits, _ := strings.Cut(text, "/")
	number, err := strconv.ParseInt(digits, 10, 64)
	return Save{Draft: draft, Number: number}, err == nil && number >= 0 && draftPattern.MatchString(draft)
}

// String formats the draft and the number. It is empty without a draft.
func (s Save) String() string {
	if s.Draft == "" {
		return ""
	}
	return s.Draft + "/" + strconv.FormatInt(s.Number, 10)
}

// follow reports whether d is the same save as before, which is stored. It fails with [ErrStaleSave] if d is older.
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
			return false, ErrStaleSave // one number identifies one text
		}
		return true, nil
	case d.Order == 0:
		d.Order = before.Order
	}
	return false, nil
}
