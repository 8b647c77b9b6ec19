package opfs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apply returns the file after the patches, cut off after cut bytes of them.
func apply(image []byte, patches []patch, cut int) []byte {
	image = bytes.Clone(image)
	for _, p := range patches {
		data := p.data[:min(len(p.data), cut)]
		cut -= len(data)
		if grow := p.offset + len(data) - len(image); grow > 0 && len(data) > 0 {
			image = append(image, make([]byte, grow)...)
		}
		copy(image[min(p.offset, len(image)):], data)
	}
	return image
}

const uncut = 1 << 30

// texts have lengths that make slots move: they shrink and grow over several units.
func texts() (all []string) {
	for i, n := range []int{10, 700, 30, 1500, 1500, 5, 400, 2500, 1, 1, 600} {
		all = append(all, fmt.Sprintf("%d %s\n", i, strings.Repeat("x", n)))
	}
	return all
}

// history calls visit with each state of a file, its text, and the next patches and text.
func history(t *testing.T, visit func(image []byte, now slot, patches []patch, next string)) {
	var image []byte
	for i, next := range texts() {
		now, all, err := newest(image)
		var patches []patch
		if i == 0 {
			require.ErrorIs(t, err, errNoText)
			patches = restarting(now, all, 1000, []byte(next))
		} else {
			require.NoError(t, err)
			patches = following(now, all, []byte(next))
		}
		visit(image, now, patches, next)
		image = apply(image, patches, uncut)
		after, _, err := newest(image)
		require.NoError(t, err)
		require.Equal(t, next, string(after.text))
		require.Equal(t, int64(1000+i), after.number)
		require.Less(t, len(image), 3*3072, "the file must not grow and grow")
	}
}

func TestCrashAtAnyByteLeavesOldOrNewVersion(t *testing.T) {
	history(t, func(image []byte, now slot, patches []patch, next string) {
		size := 0
		for _, p := range patches {
			size += len(p.data)
		}
		for cut := range size {
			found, _, err := newest(apply(image, patches, cut))
			if now.number == 0 {
				require.Error(t, err, "the first version is written twice, and counts when both are there")
				continue
			}
			// errTorn only says that a newer one may have been there.
			require.True(t, err == nil || errors.Is(err, errTorn), "%v", err)
			require.Equal(t, string(now.text), string(found.text), "cut at %d of %d", cut, size)
		}
	})
}

func TestRestartingCrashAtAnyByteLeavesOldOrNew(t *testing.T) {
	history(t, func(image []byte, now slot, _ []patch, _ string) {
		_, all, _ := newest(image)
		patches := restarting(now, all, now.number+2, []byte("anew"))
		size := 0
		for _, p := range patches {
			size += len(p.data)
		}
		for cut := range size + 1 {
			found, _, _ := newest(apply(image, patches, cut))
			require.Contains(t, []string{string(now.text), "anew"}, string(found.text))
		}
		whole := apply(image, patches, uncut)
		_, all, err := newest(whole)
		require.NoError(t, err)
		assert.Len(t, all, 2)
	})
}

// A file that was cut short is never mistaken for an older version of itself.
func TestTruncationIsNoticed(t *testing.T) {
	history(t, func(image []byte, now slot, _ []patch, _ string) {
		for size := range len(image) {
			found, _, err := newest(image[:size])
			if err == nil {
				require.Equal(t, string(now.text), string(found.text), "cut to %d of %d", size, len(image))
			}
		}
	})
}

func TestNoByteCanBeChanged(t *testing.T) {
	history(t, func(image []byte, now slot, _ []patch, _ string) {
		for i := now.offset; i < now.end; i++ {
			changed := bytes.Clone(image)
			changed[i] ^= 1
			_, _, err := newest(changed)
			require.Error(t, err)
		}
	})
}

func TestFutureVersion(t *testing.T) {
	image := apply(nil, restarting(slot{}, nil, 7, []byte("token 1\n")), uncut)
	text := []byte("whatever comes")
	head := fmt.Appendf(nil, "%s%d number=8 bytes=%d", magic, version+1, len(text))
	newer := fmt.Appendf(head, " %s\n%s", checksum(head, text), text)
	_, _, err := newest(apply(image, []patch{{align, newer}}, uncut))
	assert.ErrorIs(t, err, errFuture)
}
