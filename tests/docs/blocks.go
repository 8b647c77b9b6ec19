// Package docs runs every code block of the documentation: JavaScript in a browser, Go as a program of another
// module, and commands against the Makefile, the server's flags or a running server. Blocks of other languages must
// be text, json, html, jsx, vue, svelte or mjs; see exempt. The blocks of docs/frameworks.md are components, which run
// in a page of their framework. Those of docs/testing.md are modules, which the test runners run.
//
// A comment before or after a block contains what the test needs but a reader does not:
//
//	<!-- check: expression -->   after a js block: true in the page after the block has run
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// block is one fenced block of a page.
type block struct {
	page  string // relative to the repository
	line  int    // of its first line of code
	lang  string
	text  string
	check string
}

func (b block) name() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// generated pages are made from their sources. A test compares both.
var generated = []string{"docs/reference.md", "docs/reference-go.md"}

// exempt languages are not code, or the tests of recipes, frameworks and runners use their blocks.
var exempt = []string{"text", "json", "html", "jsx", "vue", "svelte", "mjs"}

// pages lists the documentation, relative to root.
func pages(root string) ([]string, error) {
	found := []string{"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if name = filepath.ToSlash(name); !slices.Contains(generated, name) {
			found = append(found, name)
		}
		return err
	})
	return found, err
}

// allBlocks returns the blocks of all pages.
func allBlocks(root string) ([]block, error) {
	names, err := pages(root)
	if err != nil {
		return nil, err
	}
	var blocks []block
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		found, err := blocksOf(name, string(text))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, found...)
	}
	return blocks, nil
}

var (
	fence   = regexp.MustCompile("^( *)(`{3,})(.*)$")
	checked = regexp.MustCompile(`^<!-- check: (.*) -->$`)
)

// blocksOf returns the fenced blocks of a page. An unclosed block is an error.
func blocksOf(page, text string) ([]block, error) {
	var blocks []block
	var open []string // the opening fence
	var indent string
	for i, line := range strings.Split(text, "\n") {
		if open == nil {
			if open = fence.FindStringSubmatch(line); open != nil {
				indent = open[1]
				blocks = append(blocks, block{page: page, line: i + 2, lang: strings.TrimSpace(open[3])})
			} else if check := checked.FindStringSubmatch(line); check != nil && len(blocks) > 0 {
				blocks[len(blocks)-1].check = check[1]
			}
			continue
		}
		if strings.TrimSpace(line) == open[2] {
			open = nil
			continue
		}
		blocks[len(blocks)-1].text += strings.TrimPrefix(line, indent) + "\n"
	}
	if open != nil {
		return nil, fmt.Errorf("%s: a code block is not closed", page)
	}
	return blocks, nil
}
