package arch

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	decisionPath = regexp.MustCompile(`^docs/adr/(\d{4})-[a-z0-9-]+\.md$`)
	word         = regexp.MustCompile(`\S*[A-Za-z0-9]\S*`)
)

const maxDecision = 250

// oddDecisions: a decision has a number of its own, a context, a decision and consequences, and at most maxDecision words.
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

// Sentences whose subject is a clause, and verbs without an actor, are hard to read for readers whose first language is not English.
var unclear = regexp.MustCompile(`(?:^|[.:] )(?:Who|Whoever|What|Whatever|Whose)(?: |,)|\b(?:is|are|was|be) told\b|\bhas it\b|\bof before\b|\bin its turn\b|\bin the midst\b`)

// unclearSentences: the documents have none of the patterns of unclear. The reference pages come from comments, and a question may begin so.
func unclearSentences(files []source) []string {
	var found []string
	for _, f := range files {
		if path.Ext(f.path) != ".md" || strings.HasPrefix(path.Base(f.path), "reference") {
			continue
		}
		code := false
		for i, line := range strings.Split(string(f.text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			text := strings.TrimLeft(line, " *-#>")
			if m := unclear.FindString(text); m != "" && !code && !strings.Contains(text, "?") {
				found = append(found, fmt.Sprintf("%s:%d has %q", f.path, i+1, strings.TrimSpace(m)))
			}
		}
	}
	return found
}
