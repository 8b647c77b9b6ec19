package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// foreign programs are not run. Their documentation was tested by hand.
var foreign = []string{"npm"}

// Each command names an existing target of the Makefile, flag of the server or folder. Commands that send requests to
// the server are run.
func TestCommands(t *testing.T) {
	t.Parallel()
	known := knownTo(t, "../..")
	for _, b := range blocksIn(t, "sh") {
		t.Run(b.name(), func(t *testing.T) {
			var client *curl
			for _, command := range commands(b.text) {
				if command[0] != "curl" {
					assert.NoError(t, known.check(command), command)
					continue
				}
				if client == nil {
					client = newCurl(t, serve(t).URL)
				}
				assert.NoError(t, client.run(command[1:]), command)
			}
		})
	}
}

func TestCommandsThatAreWrong(t *testing.T) {
	t.Parallel()
	known := knownTo(t, "../..")
	for _, line := range []string{
		"make nonsense", "make test NONSENSE=1", "go test -run TestNonsense ./tests/e2e", "holdfast serve --nonsense 1", "holdfast nonsense",
		"go run ./nonsense", "go test ./tests/docs -nonsense", "nonsense",
	} {
		assert.Error(t, known.check(commands(line)[0]), line)
	}
	client := newCurl(t, serve(t).URL)
	assert.Error(t, client.run(commands("curl http://localhost:8080/api/nonsense")[0][1:]))
	assert.Error(t, client.run(commands("curl --nonsense http://localhost:8080/")[0][1:]))
}

// Make does nothing, and reports success, for a phony target without a rule.
func TestContinuousIntegrationRunsTargets(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	_, targets, found := strings.Cut(string(script), " make --no-print-directory ")
	require.True(t, found)
	require.NotEmpty(t, words(targets))
	assert.NoError(t, knownTo(t, "../..").checkMake(words(targets)))
}

// commands splits a script into its commands, and these into words. It supports comments, continued lines, quotes and
// &&, and nothing else of the shell.
func commands(script string) [][]string {
	script = strings.ReplaceAll(script, "\\\n", " ")
	var found [][]string
	for line := range strings.Lines(script) {
		for _, part := range strings.Split(line, "&&") {
			if command := words(part); len(command) > 0 {
				found = append(found, command)
			}
		}
	}
	return found
}

func words(line string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`#.*|'([^']*)'|"([^"]*)"|\S+`).FindAllStringSubmatch(line, -1) {
		if strings.HasPrefix(m[0], "#") {
			break
		}
		found = append(found, strings.Trim(m[0], `'"`))
	}
	return found
}

// vocabulary lists the parts that a command may use.
type vocabulary struct {
	root               string
	targets, variables []string // of the Makefile
	flags              []string // of the server
	programs           []string // the commands of holdfast
}

func knownTo(t *testing.T, root string) vocabulary {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	usage, err := exec.Command(serving.Binary(t), "serve", "-h").CombinedOutput()
	require.NoError(t, err)
	all, err := exec.Command(serving.Binary(t), "help").Output()
	require.NoError(t, err)
	return vocabulary{
		root:      root,
		targets:   firsts(`(?m)^([a-z][a-z0-9-]*):.*## `, string(makefile)),
		variables: firsts(`\$\((?:or \$\()?([A-Z]+)\b`, string(makefile)),
		flags:     firsts(`(?m)^  -([a-z-]+)`, string(usage)),
		programs:  firsts(`(?m)^  holdfast ([a-z]+)`, string(all)),
	}
}

func firsts(pattern, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func (v vocabulary) check(command []string) error {
	switch {
	case command[0] == "make":
		return v.checkMake(command[1:])
	case command[0] == "holdfast" && len(command) > 1 && command[1] == "serve":
		return v.checkServe(command[2:])
	case command[0] == "holdfast" && len(command) > 1 && slices.Contains(v.programs, command[1]):
		return nil
	case command[0] == "go" && len(command) == 3 && slices.Contains([]string{"run", "test", "build"}, command[1]):
		_, err := os.Stat(filepath.Join(v.root, command[2]))
		return err
	case command[0] == "go" && len(command) == 5 && command[1] == "test" && command[2] == "-run":
		return hasTest(filepath.Join(v.root, command[4]), command[3])
	case slices.Contains(foreign, command[0]):
		return nil
	}
	return fmt.Errorf("no test knows how to check %q", command)
}

// hasTest fails if no file in the folder has a test with this name.
func hasTest(folder, name string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("%s has no test %s", folder, name))
}

func (v vocabulary) checkMake(args []string) error {
	for _, arg := range args {
		name, _, variable := strings.Cut(arg, "=")
		switch {
		case variable && !slices.Contains(v.variables, name):
			return fmt.Errorf("the Makefile knows no variable %s", name)
		case !variable && !slices.Contains(v.targets, name):
			return fmt.Errorf("the Makefile has no target %s", name)
		}
	}
	return nil
}

func (v vocabulary) checkServe(args []string) error {
	for _, arg := range args {
		if name, flag := strings.CutPrefix(arg, "--"); flag && !slices.Contains(v.flags, name) {
			return fmt.Errorf("holdfast serve has no flag --%s", name)
		}
	}
	return nil
}
