// Command overlay writes an overlay for the go command. With it, a run of the simulation depends only on its seed:
//
//	go run ./tests/simulation/overlay .cache/simulation
//	go test -tags simulated -overlay .cache/simulation/overlay.json ./tests/simulation
//
// It changes five files of the installed Go runtime. The random numbers that choose between the cases of a select,
// between timers of one instant and for the order of a map, and those of math/rand/v2, come from the seed of the run.
// No goroutine is preempted for a long run, because that depends on the machine's other work. Goroutines begin with a
// larger stack, because copying growing stacks took a seventh of the time.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change replaces a text that occurs exactly once.
type change struct{ file, before, after string }

var changes = []change{
	{"rand.go", "	globalRand.state.Init(*seed)\n", "	*seed = [32]byte{1}\n	globalRand.state.Init(*seed)\n"},
	{"rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", `	if simulated != 0 {
		simulated += 0x9e3779b97f4a7c15 // SplitMix64; one goroutine runs at a time
		z := simulated
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	mp := getg().m
	c := &mp.chacha8
`},
	{"select.go", "j := cheaprandn(uint32(norder + 1))", "j := randn(uint32(norder + 1))"},
	{"time.go", "t.rand = cheaprand()", "t.rand = uint32(rand())"},
	{"rand.go", "var readRandomFailed bool\n", `var readRandomFailed bool

// simulated is the state of the random numbers of a simulated run, or 0.
var simulated uint64

//go:linkname simulation_seedRuntime github.com/holdfast-dev/holdfast/tests/simulation.seedRuntime
func simulation_seedRuntime(seed uint64) { simulated = seed }
`},
	{"stack.go", "var startingStackSize uint32 = fixedStack", "var startingStackSize uint32 = 4 * fixedStack"},
	{"proc.go", "const forcePreemptNS = 10 * 1000 * 1000 ", "const forcePreemptNS = 3600 * 1000 * 1000 * 1000 "},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: overlay <folder>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the changed files and the overlay into a folder.
func write(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output() // a program that was built with -trimpath does not know it
	if err != nil {
		return fmt.Errorf("ask the go command where Go is installed: %w", err)
	}
	texts, replace := make(map[string]string), make(map[string]string)
	for _, c := range changes {
		original := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", c.file)
		if texts[c.file] == "" {
			text, err := os.ReadFile(original) //nolint:gosec // of the installed Go
			if err != nil {
				return err
			}
			texts[c.file] = string(text)
			replace[original] = filepath.Join(folder, c.file)
		}
		if strings.Count(texts[c.file], c.before) != 1 {
			return fmt.Errorf("runtime/%s of this Go has changed: it must have this once:\n%s", c.file, c.before)
		}
		texts[c.file] = strings.Replace(texts[c.file], c.before, c.after, 1)
	}
	for file, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), text, 0o600)
}
