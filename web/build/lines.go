package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// errLayout tells that this program does not know what the toolchain made.
var errLayout = errors.New("the tables of the runtime are not laid out as by Go 1.20 to 1.26; see web/build/lines.go")

// The pclntab: a header of 8 bytes (magic, padding, instruction quantum, pointer size), then words.
var pclnMagic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

const (
	funcCount  = 8      // offsets of words in the header
	tablesAt   = 8 + 48 // of the tables themselves
	funcsAt    = 8 + 56 // of the list of functions
	funcPcsp   = 16     // offsets in a _func
	funcPcfile = 20
	funcPcln   = 24
	funcNpc    = 28
	funcSize   = 44 // the offsets of further tables follow
)

// forgetLines takes the line numbers out of the memory of a program that Go made: 40 KB at brotli
// 11. Tracebacks name functions still, but no lines.
//
// The runtime finds a function's lines in two tables of the pclntab (runtime/symtab.go, moduledata
// and _func). An offset of 0 means that there is no table. The bytes of the tables that nobody
// refers to any more become zeros.
func forgetLines(memory []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = errLayout
		}
	}()
	at := bytes.Index(memory, pclnMagic)
	if at < 0 {
		return errLayout
	}
	pcln := memory[at:]
	word := func(at int) int { return int(binary.LittleEndian.Uint64(pcln[at:])) }
	count, tables, funcs := word(funcCount), pcln[word(tablesAt):word(funcsAt)], pcln[word(funcsAt):]
	used := make([]bool, len(tables))
	for i := range count {
		f := funcs[binary.LittleEndian.Uint32(funcs[8*i+4:]):]
		offset := func(at int) int { return int(binary.LittleEndian.Uint32(f[at:])) }
		keep := []int{offset(funcPcsp)}
		for j := range offset(funcNpc) {
			keep = append(keep, offset(funcSize+4*j))
		}
		for _, o := range keep {
			for end := o + tableSize(tables[o:]); o < end; o++ {
				used[o] = true
			}
		}
		clear(f[funcPcfile : funcPcln+4])
	}
	for i := range tables {
		if !used[i] {
			tables[i] = 0
		}
	}
	return nil
}

// tableSize returns the length of a table: pairs of varints, the last of which is a single zero
// (runtime/symtab.go, step).
func tableSize(table []byte) int {
	n := 0
	for first := true; ; first = false {
		delta, size := binary.Uvarint(table[n:])
		n += size
		if size <= 0 {
			panic(errLayout)
		}
		if delta == 0 && !first {
			return n
		}
		_, size = binary.Uvarint(table[n:])
		n += size
	}
}
