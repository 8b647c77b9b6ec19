package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const speaker = `package main

import (
	"errors"
	"fmt"
	"strconv"
)

type stringer struct{}

func (stringer) String() string { return "a stringer" }

type state struct{ text string }

func (s *state) Write(b []byte) (int, error) { s.text += string(b); return len(b), nil }
func (*state) Width() (int, bool)            { return 0, false }
func (*state) Precision() (int, bool)        { return 0, false }
func (*state) Flag(int) bool                 { return false }

func main() {
	cause := errors.New("the cause")
	err := fmt.Errorf("line %d: %+v, %s: %w", 7, "text", stringer{}, cause)
	println(err.Error())
	println(errors.Is(err, cause), fmt.Errorf("alone").Error())
	println(fmt.Sprintf("100%% %v%v %", nil, struct{}{}))
	var s state
	_, _ = fmt.Fprintf(&s, "%q", "one")
	_, _ = fmt.Fprint(&s, " ", "two")
	println(s.text)
	println(1.5, -0.0625, 1e300)
	for _, text := range texts {
		quoted := strconv.Quote(text)
		prefix, err := strconv.QuotedPrefix(quoted + " \"more\"")
		read, err2 := strconv.Unquote(quoted)
		println(quoted, prefix == quoted && err == nil, read == text && err2 == nil)
	}
	read, err := strconv.Unquote("\"\\a\\u200b\\U0001f600\\xff\\t\"") // as the library writes it
	println(read == "\a\u200b\U0001f600\xff\t", err == nil)
	for _, bad := range []string{"", "a", "\"", "\"a", "\"a\"b", "\"a\nb\"", "\"\\q\"", "\"\\x1\"", "\"\\u12\"", "\"\\"} {
		if read, err := strconv.Unquote(bad); err == nil {
			println("reads", bad, "as", read)
		}
	}
}

var texts = []string{"", "one \"two\" \\", "a\nb\x00c\x7f", "größer 世界 \u200b"}
`

func TestStandins(t *testing.T) {
	dir := t.TempDir()
	overlay, err := overlayStandins(dir)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, []byte(speaker), 0o644))

	out, err := exec.Command("go", "run", "-overlay="+overlay, program).CombinedOutput()

	require.NoError(t, err, string(out))
	assert.Equal(t, []string{
		"line 7: text, a stringer: the cause",
		"true alone",
		"100% <nil>? %",
		"one two",
		"1.500 -0.062 2^63 or more",
		`"" true true`,
		`"one \"two\" \\" true true`,
		`"a\x0ab\x00c\x7f" true true`,
		"\"größer 世界 \u200b\" true true",
		"true true",
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))
}
