package campaign

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// record is the log file of all actions with their times. The times are those of the pages' clocks, which are the
// machine's.
type record struct {
	file *bufio.Writer
	last map[*document]string // the last state seen of a document
}

func newRecord(t *testing.T, path string) *record {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	file, err := os.Create(path)
	require.NoError(t, err)
	r := &record{file: bufio.NewWriter(file), last: map[*document]string{}}
	t.Cleanup(func() {
		require.NoError(t, r.file.Flush())
		require.NoError(t, file.Close())
	})
	return r
}

func (r *record) line(at float64, format string, values ...any) {
	_, _ = fmt.Fprintf(r.file, "%s %s\n", time.UnixMilli(int64(at)).Format("15:04:05.000"), fmt.Sprintf(format, values...))
}

// entry logs a line of a page. It lists words individually if there are few.
func (r *record) entry(o *oracle, e entry) {
	if e.What == "control" {
		return
	}
	var b strings.Builder
	for _, field := range []struct{ name, value string }{{"code", e.Code}, {"generation", e.Generation}, {"base", e.Base}, {"draft", e.Draft}, {"why", e.Why}} {
		if field.value != "" {
			fmt.Fprintf(&b, " %s %s", field.name, field.value)
		}
	}
	if e.Bytes > 0 {
		fmt.Fprintf(&b, " %d bytes", e.Bytes)
	}
	if n := len(e.Words); n > 0 {
		fmt.Fprintf(&b, " %d words: %s … %s", n, e.Words[0], e.Words[n-1])
	}
	if len(e.Replaced) > 0 {
		fmt.Fprintf(&b, " replaced: %v", e.Replaced)
	}
	document := ""
	if s := o.sessions[e.Session]; s != nil {
		document = s.document.name
	}
	r.line(e.At, "%s %s %s%s", document, e.Session, e.What, b.String())
}

// seen logs the state of a document if it has changed.
func (r *record) seen(s *session, found seen) {
	text := fmt.Sprintf("%d words; %s", len(found.Content), strings.Join(found.Seen, "; "))
	if r.last[s.document] != text {
		r.last[s.document] = text
		r.line(clock(), "%s seen by %s: %s", s.document.name, s.id, text)
	}
}

func names(sessions []*session) (list []string) {
	for _, s := range sessions {
		list = append(list, s.id)
	}
	return list
}
