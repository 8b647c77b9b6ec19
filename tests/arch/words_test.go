package arch

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
)

var (
	decisionPath = regexp.MustCompile(`^docs/adr/(\d{4})-[a-z0-9-]+\.md$`)
	word         = regexp.MustCompile(`\S*[A-Za-z0-9]\S*`)
)

const maxDecision = 250

// oddDecisions finds decisions without a number of their own, without one of the three parts, or with more than
// maxDecision words.
func oddDecisions(files []source) []string {
	var found []string
	numbers := make(map[string]string)
	for _, f := range files {
		m := decisionPath.FindStringSubmatch(f.path)
		if m == nil {
			continue
		}
		if other := numbers[m[1]]; other != "" {
			found = append(found, fmt.Sprintf("%s has the number of %s", f.path, other))
		}
		numbers[m[1]] = f.path
		_, text, _ := strings.Cut(string(f.text), "\n")
		for _, part := range []string{"Context", "Decision", "Consequences"} {
			if !strings.Contains(text, "\n## "+part+"\n") {
				found = append(found, fmt.Sprintf("%s has no part %s", f.path, part))
			}
		}
		if n := len(word.FindAllString(text, -1)); n > maxDecision {
			found = append(found, fmt.Sprintf("%s has %d words, more than %d", f.path, n, maxDecision))
		}
	}
	return found
}

// unclear finds sentences whose subject is a clause, verbs without an actor, and other words for steal. Readers whose first language is not
// English find them hard to read.
var unclear = regexp.MustCompile(`(?:^|[.:;]\*{0,2} )(?:Who|Whoever|What|Whatever|Whose)(?: |,)|\b(?:is|are|was|were|be|been) told\b|\bhas it\b|\bof before\b|\bin its turn\b|\bin the midst\b|\b[Tt]hie(?:f|ves)\b|\btheft\b|\brobbed\b`)

// unclearSentences checks the documents and the comments of all sources for the patterns of unclear. It skips the reference pages, which
// are made of comments, and questions.
func unclearSentences(files []source) []string {
	var found []string
	for _, f := range files {
		for _, l := range prose(f) {
			if m := unclear.FindString(l.text); m != "" && !strings.Contains(l.text, "?") {
				found = append(found, fmt.Sprintf("%s:%d has %q", f.path, l.number, strings.TrimSpace(m)))
			}
		}
	}
	return found
}

type line struct {
	number int
	text   string
}

// prose returns the lines of a file that are checked.
func prose(f source) []line {
	switch path.Ext(f.path) {
	case ".md":
		if !strings.HasPrefix(path.Base(f.path), "reference") {
			return documentLines(f)
		}
	case ".go":
		return goComments(f)
	case ".ts", ".js":
		return typeScriptComments(f)
	}
	return nil
}

// documentLines returns the lines of a document that are not code.
func documentLines(f source) (list []line) {
	code := false
	for i, text := range strings.Split(string(f.text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			code = !code
		}
		if !code {
			list = append(list, line{i + 1, strings.TrimLeft(text, " *-#>")})
		}
	}
	return list
}

func goComments(f source) (list []line) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(f.path, -1, len(f.text)), f.text, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return list
		}
		if kind != token.COMMENT {
			continue
		}
		for i, l := range strings.Split(text, "\n") {
			list = append(list, line{set.Position(at).Line + i, strings.TrimLeft(l, " \t/*-")})
		}
	}
}

// typeScriptComment matches a line of a comment, or a comment behind code.
var typeScriptComment = regexp.MustCompile(`^\s*(?://|/\*|\*)[ */]*(.*)|\s//\s(.*)`)

func typeScriptComments(f source) (list []line) {
	for i, text := range strings.Split(string(f.text), "\n") {
		if m := typeScriptComment.FindStringSubmatch(text); m != nil {
			list = append(list, line{i + 1, m[1] + m[2]})
		}
	}
	return list
}
