package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linesLeft counts the functions that have a table of lines.
func linesLeft(memory []byte) (left, count int, err error) {
	at := bytes.Index(memory, pclnMagic)
	if at < 0 {
		return 0, 0, errLayout
	}
	pcln := memory[at:]
	count = int(binary.LittleEndian.Uint64(pcln[funcCount:]))
	funcs := pcln[binary.LittleEndian.Uint64(pcln[funcsAt:]):]
	for i := range count {
		f := funcs[binary.LittleEndian.Uint32(funcs[8*i+4:]):]
		if binary.LittleEndian.Uint32(f[funcPcln:]) != 0 {
			left++
		}
	}
	return left, count, nil
}

// A program without its lines runs as before, unwinds as before, and names its functions.
func TestStripLines(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js to run the program with")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(`package main

import "runtime"

func main() {
	defer func() {
		println("recovered", recover().(error).Error())
		for range 100 { // the collector walks the stacks
			_ = make([]byte, 1<<20)
		}
		runtime.GC()
		fall()
	}()
	deep(1000)
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return []int{}[n]
	}
	return deep(n-1) + 1
}

//go:noinline
func fall() { panic("falls") }
`), 0o600))
	program := filepath.Join(dir, "program.wasm")
	build := exec.Command("go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	wasm, err := os.ReadFile(program)
	require.NoError(t, err)
	wasm, err = merged(wasm, func(memory []byte) error {
		left, count, err := linesLeft(memory)
		require.NoError(t, err)
		assert.Greater(t, left, count/2)
		require.NoError(t, forgetLines(memory))
		left, count, err = linesLeft(memory)
		assert.Zero(t, left)
		assert.Greater(t, count, 1000)
		return err
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, wasm, 0o600))

	goroot, err := goOutput("env", "GOROOT")
	require.NoError(t, err)
	ran := exec.Command(node, filepath.Join(goroot, "lib", "wasm", "wasm_exec_node.js"), program)
	said, _ := ran.CombinedOutput()
	assert.Contains(t, string(said), "recovered runtime error: index out of range [0] with length 0")
	assert.Contains(t, string(said), "panic: falls")
	assert.Contains(t, string(said), "main.fall", "functions keep their names")
	assert.NotContains(t, string(said), "main.go:")
}

func TestTablesThatAreLaidOutOtherwise(t *testing.T) {
	header := append(bytes.Clone(pclnMagic), make([]byte, 64)...)
	header[funcCount] = 1
	for name, memory := range map[string][]byte{"none": make([]byte, 100), "cut": header} {
		assert.ErrorIs(t, forgetLines(memory), errLayout, name)
	}
}
