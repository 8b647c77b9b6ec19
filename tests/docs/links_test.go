package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	testName = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	testFile = regexp.MustCompile("`(\\w+_test\\.go)`")
	folder   = regexp.MustCompile("`(tests/\\w+)`")
)

// A figure that stands on two pages is the same on both.
func TestComparisonShowsTheFiguresOfThePerformancePage(t *testing.T) {
	tables := regexp.MustCompile(`(?s)<!-- (\w+), measured -->.*?<!-- end of \w+ -->`)
	performance, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	comparison, err := os.ReadFile("../../docs/comparison.md")
	require.NoError(t, err)
	shown := tables.FindAllString(string(comparison), -1)
	assert.Len(t, shown, 2)
	for _, table := range shown {
		assert.Contains(t, string(performance), table)
	}
	measured := regexp.MustCompile(`\| size \| Wasm, brotli 11 \| ([\d.]+) KB`).FindSubmatch(performance)
	require.NotNil(t, measured)
	size, err := strconv.ParseFloat(string(measured[1]), 64)
	require.NoError(t, err)
	assert.Contains(t, string(comparison), fmt.Sprintf("%.0f KB of Wasm", size))
}

// Every link target and every test name in the documentation exists.
func TestLinksAndNames(t *testing.T) {
	names, files := testsOf(t, "../..")
	list, err := pages("../..")
	require.NoError(t, err)
	for _, page := range list {
		text, err := os.ReadFile(filepath.Join("../..", page))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") {
				_, err := os.Stat(filepath.Join("../..", filepath.Dir(page), m[1]))
				assert.NoError(t, err, page)
			}
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			assert.True(t, strings.Contains(names, "func "+m[1]+"("), "%s names %s", page, m[1])
		}
		for _, m := range testFile.FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, files, m[1], page)
		}
		for _, m := range folder.FindAllStringSubmatch(string(text), -1) {
			assert.DirExists(t, filepath.Join("../..", m[1]), page)
		}
	}
}

// testsOf returns the sources of all tests and their file names.
func testsOf(t *testing.T, root string) (sources string, files []string) {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".cache" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		files = append(files, filepath.Base(path))
		return err
	}))
	return all.String(), files
}
