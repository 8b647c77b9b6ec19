package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	section    = regexp.MustCompile(`^// -+ (.*?) -+$`)
	exports    = regexp.MustCompile(`^(?:export (?:declare )?)?(interface|class|type|function) (\w+)`)
	docComment = regexp.MustCompile(`(?s)^/\*\*\s*(.*?)\s*\*/$`)
	// commentMargin is what stands before the text of a line of a comment.
	commentMargin = regexp.MustCompile(`(?m)^[ \t]*\*?[ \t]*`)
	codeLine      = regexp.MustCompile(`^\| ("[\w-]+")[;,]?\s*(?://\s*(.*))?$`)
)

// declared makes the page of a declaration file. It knows the shapes that ours has: comments before declarations, one
// member or several short ones on a line, a comment behind them.
func declared(source string) (string, error) {
	var page strings.Builder
	fmt.Fprintf(&page, note, "web/holdfast.d.ts")
	page.WriteString("# Reference of the JavaScript package\n\n")
	lines := strings.Split(source, "\n")
	i := 0
	for ; i < len(lines) && strings.HasPrefix(lines[i], "//"); i++ {
		if !strings.HasPrefix(lines[i], "///") {
			page.WriteString(strings.TrimPrefix(strings.TrimPrefix(lines[i], "//"), " ") + "\n")
		}
	}
	page.WriteString("\n## Locks\n")
	var comment string
	for i < len(lines) {
		line := lines[i]
		switch {
		case section.MatchString(line):
			fmt.Fprintf(&page, "\n## %s\n", section.FindStringSubmatch(line)[1])
			i++
		case strings.HasPrefix(line, "/**"):
			comment, i = takeComment(lines, i)
		case exports.MatchString(line):
			end, err := endOf(lines, i)
			if err != nil {
				return "", err
			}
			writeDeclaration(&page, comment, lines[i:end])
			comment, i = "", end
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "//"):
			i++
		default:
			return "", fmt.Errorf("line %d of the declarations is of no known shape: %s", i+1, line)
		}
	}
	return page.String(), nil
}

// takeComment returns the text of the comment that begins at line i and the line after it.
func takeComment(lines []string, i int) (string, int) {
	end := i
	for !strings.Contains(lines[end], "*/") {
		end++
	}
	text := docComment.FindStringSubmatch(strings.TrimSpace(strings.Join(lines[i:end+1], "\n")))[1]
	return strings.TrimSpace(commentMargin.ReplaceAllString(text, "")), end + 1
}

// endOf returns the line after the declaration, or member, that begins at line i.
func endOf(lines []string, i int) (int, error) {
	depth := 0
	for end := i; end < len(lines); end++ {
		code := withoutComment(lines[end])
		depth += strings.Count(code, "{") + strings.Count(code, "(") - strings.Count(code, "}") - strings.Count(code, ")")
		if depth == 0 && (strings.HasSuffix(code, ";") || strings.HasSuffix(code, "}")) {
			return end + 1, nil
		}
	}
	return 0, fmt.Errorf("the declaration at line %d does not end: %s", i+1, lines[i])
}

// withoutComment is what stands before a comment at the end of a line.
func withoutComment(line string) string {
	code, _, _ := strings.Cut(line, "//")
	code, _, _ = strings.Cut(code, "/*")
	return strings.TrimSpace(code)
}

func writeDeclaration(page *strings.Builder, comment string, lines []string) {
	found := exports.FindStringSubmatch(lines[0])
	kind, name := found[1], found[2]
	fmt.Fprintf(page, "\n### %s\n", name)
	if comment != "" {
		fmt.Fprintf(page, "\n%s\n", comment)
	}
	page.WriteString("\n")
	switch {
	case (kind == "interface" || kind == "class") && len(lines) > 1:
		if head := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(lines[0], "export "), "{")); strings.Contains(head, " extends ") {
			fmt.Fprintf(page, "`%s`\n\n", head)
		}
		writeMembers(page, lines[1:len(lines)-1])
	case isCodes(lines):
		writeCodes(page, lines[1:])
	default:
		fmt.Fprintf(page, "```ts\n%s\n```\n", strings.Join(lines, "\n"))
	}
}

// writeMembers lists the members of an interface with what is said of them.
func writeMembers(page *strings.Builder, lines []string) {
	var comment string
	for i := 0; i < len(lines); {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "/**") {
			comment, i = takeComment(lines, i)
			continue
		}
		if line == "" || strings.HasPrefix(line, "//") {
			i++
			continue
		}
		end, err := endOf(lines, i)
		if err != nil {
			end = len(lines)
		}
		var code []string
		for _, part := range lines[i:end] {
			code = append(code, withoutComment(part))
			if _, said, ok := strings.Cut(part, "// "); ok {
				comment = strings.TrimSpace(comment + " " + strings.TrimSpace(said))
			}
		}
		fmt.Fprintf(page, "- `%s`", strings.TrimSuffix(strings.Join(code, " "), ";"))
		if comment != "" {
			fmt.Fprintf(page, "\n  %s", strings.ReplaceAll(strings.ReplaceAll(comment, "\n", "\n  "), "\n  \n", "\n\n"))
		}
		page.WriteString("\n")
		comment, i = "", end
	}
}

// isCodes tells a union of strings that says of each what it means.
func isCodes(lines []string) bool {
	for _, line := range lines[1:] {
		if m := codeLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && m[2] != "" {
			return true
		}
	}
	return false
}

func writeCodes(page *strings.Builder, lines []string) {
	page.WriteString("| Code | |\n|---|---|\n")
	for _, line := range lines {
		if m := codeLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			fmt.Fprintf(page, "| `%s` | %s |\n", m[1], m[2])
		}
	}
}
