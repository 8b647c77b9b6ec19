package docs

import (
	"regexp"
	"slices"
	"strings"
)

// counted are the pages whose programs Recipes counts.
var counted = []string{"docs/recipes.md", "docs/frameworks.md"}

var (
	named   = regexp.MustCompile(`^(?://|<!--) (\w+\.(?:jsx?|vue|svelte))\b`)
	comment = regexp.MustCompile(`(?s:/\*.*?\*/|<!--.*?-->)|(?m:^\s*//.*$)`)
)

// Recipe is a program of the documentation, with its number of lines that are neither empty nor only a comment.
type Recipe struct {
	Page, Name string
	Lines      int
}

// Recipes returns the programs of the recipes and of the frameworks: all blocks that begin with the name of a file.
func Recipes(root string) ([]Recipe, error) {
	blocks, err := allBlocks(root)
	if err != nil {
		return nil, err
	}
	var recipes []Recipe
	for _, b := range blocks {
		if name := named.FindStringSubmatch(b.text); name != nil && slices.Contains(counted, b.page) {
			recipes = append(recipes, Recipe{Page: b.page, Name: name[1], Lines: linesOf(b.text)})
		}
	}
	return recipes, nil
}

func linesOf(code string) (lines int) {
	for line := range strings.Lines(comment.ReplaceAllString(code, "")) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	return lines
}
