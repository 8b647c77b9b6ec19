package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The initial memory of a program equals its data section, except for zeros at its end.
func TestSegmentsKeepTheMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memory []byte
		for range rapid.IntRange(0, 20).Draw(t, "runs") {
			memory = append(memory, make([]byte, rapid.IntRange(0, 3*gap).Draw(t, "zeros"))...)
			memory = append(memory, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...)
		}
		memory = bytes.TrimRight(memory, "\x00")

		again, err := readData(writeData(memory))

		require.NoError(t, err)
		assert.Equal(t, string(memory), string(again))
	})
}

func TestSegmentsAreMerged(t *testing.T) {
	data := []byte{2, // segments
		0, i32Const, 16, end, 1, 'a',
		0, i32Const, 16 + gap, end, 1, 'b',
	}
	wasm := append([]byte(preamble), 1, 2, 'x', 'y') // an unchanged section
	wasm = append(append(wasm, dataSection, byte(len(data))), data...)

	out, err := merged(wasm)

	require.NoError(t, err)
	zeros := make([]byte, gap-1)
	want := append(append([]byte{1, 0, i32Const, 16, end, gap + 1, 'a'}, zeros...), 'b')
	assert.Equal(t, append([]byte(preamble+"\x01\x02xy\x0b"), append([]byte{byte(len(want))}, want...)...), out)
	again, err := merged(out)
	require.NoError(t, err)
	assert.Equal(t, out, again)
}

func TestWasmWithoutGo(t *testing.T) {
	whole := append([]byte(preamble), dataSection, 7, 1, 0, i32Const, 16, end, 1, 'a')
	_, err := merged(whole)
	require.NoError(t, err)
	for n := range whole {
		if n == len(preamble) {
			continue // a module may also have no section
		}
		_, err := merged(whole[:n])
		assert.Error(t, err, n)
	}
	passive := append([]byte(preamble), dataSection, 4, 1, 1, 1, 'a')
	_, err = merged(passive)
	assert.ErrorContains(t, err, "the Go linker does not write")
	tooFar := append([]byte(preamble), dataSection, 11, 1, 0, i32Const, 0xff, 0xff, 0xff, 0xff, 0x07, end, 1, 'a')
	_, err = merged(tooFar)
	assert.Error(t, err)
}
