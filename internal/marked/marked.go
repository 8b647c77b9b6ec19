// Package marked writes measured text between two marks of a document.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Replace replaces the text between the marks in the file at path. The marks stay, each on a line of its own. Replace changes nothing
// and fails if the file does not contain both marks in this order.
func Replace(path, first, last, text string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(document), first)
	_, after, ends := strings.Cut(rest, last)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks %s and %s; restore them from an older version of the file", path, first, last)
	}
	return os.WriteFile(path, []byte(before+first+"\n\n"+strings.Trim(text, "\n")+"\n"+last+after), 0o644)
}
