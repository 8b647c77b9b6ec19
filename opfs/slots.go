package opfs

import (
	"bytes"
	"errors"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// A file holds versions of a text, each in a slot of its own: a header line and the text. The version with the highest
// number is current. A new version is written to a place that does not overlap the current one, so the current one
// stays whole until the new one is. All versions older than the current one are destroyed first. A file therefore holds
// two consecutive versions; any other file was damaged, or a write to it ended half-way. This is the smallest form of
// shadow paging (Lorie, 1977), which databases use.
//
// The header, with the checksum of the header up to it and of the text:
//
//	holdfast-lock 1 number=8 bytes=123 crc=89abcdef
const (
	magic      = "holdfast-lock "
	version    = 1
	align      = 512
	headerSize = 160          // no header is longer
	maxImage   = 4 << 20      // a larger file was not written by Holdfast
	maxText    = maxImage / 4 // no entry makes a table longer: a file holds two versions, and gaps
)

// slot is one version in a file.
type slot struct {
	number int64
	text   []byte
	offset int
	end    int
}

var (
	errTorn   = errors.New("the newest version of the file is damaged")
	errFuture = errors.New("the file was written by a newer version of Holdfast")
	errNoText = errors.New("the file is empty or unreadable")
)

// newest returns the current version of the file and all versions that are whole. With errTorn it returns the newest
// readable version: a later one may have been lost.
func newest(image []byte) (now slot, all []slot, err error) {
	future := int64(-1)
	for offset := 0; offset < len(image); offset += align {
		s, v, ok := readSlot(image, offset)
		switch {
		case !ok:
		case v > version:
			future = max(future, s.number)
		default:
			all = append(all, s)
			if s.number > now.number {
				now = s
			}
		}
	}
	switch {
	case future > now.number:
		return slot{}, all, errFuture
	case now.number == 0:
		return slot{}, all, errNoText
	case !slices.ContainsFunc(all, func(s slot) bool { return s.number == now.number-1 }):
		return now, all, errTorn
	}
	return now, all, nil
}

// readSlot reads the slot that begins at offset, if it is whole.
func readSlot(image []byte, offset int) (s slot, v int64, ok bool) {
	image = image[offset:]
	if !bytes.HasPrefix(image, []byte(magic)) {
		return s, 0, false
	}
	end := bytes.IndexByte(image[:min(len(image), headerSize)], '\n')
	if end < 0 {
		return s, 0, false
	}
	fields := strings.Split(string(image[len(magic):end]), " ")
	if len(fields) != 4 {
		return s, 0, false
	}
	var values [3]int64
	for i, name := range []string{"", "number=", "bytes="} {
		digits, found := strings.CutPrefix(fields[i], name)
		n, err := strconv.ParseInt(digits, 10, 64)
		if !found || err != nil || n < 0 {
			return s, 0, false
		}
		values[i] = n
	}
	size := values[2]
	if size > int64(len(image)-end-1) {
		return s, 0, false
	}
	text := image[end+1:][:size]
	head := image[:bytes.LastIndexByte(image[:end], ' ')]
	if fields[3] != checksum(head, text) {
		return s, 0, false
	}
	s = slot{number: values[1], text: text, offset: offset, end: offset + end + 1 + int(size)}
	return s, values[0], true
}

func checksum(head, text []byte) string {
	sum := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, text)
	digits := strconv.FormatUint(uint64(sum), 16)
	return "crc=" + strings.Repeat("0", 8-len(digits)) + digits
}

// patch is one write to a file.
type patch struct {
	offset int
	data   []byte
}

// following returns the writes that make text the version after now, in order. None of them overlaps now.
func following(now slot, all []slot, text []byte) []patch {
	next := newSlot(now.number+1, text)
	offset := place(now, len(next))
	return append(wiping(all, now.offset, offset), patch{offset, next})
}

// restarting returns the writes that make text the versions number and number-1, and destroy all others, now last. It
// repairs a file that was damaged; number must be at least the number of now plus two.
func restarting(now slot, all []slot, number int64, text []byte) []patch {
	first, second := newSlot(number-1, text), newSlot(number, text)
	offset := place(now, len(first))
	after := aligned(max(now.end, offset+len(first)))
	return append([]patch{{offset, first}, {after, second}}, wiping(all, offset, after)...)
}

func newSlot(number int64, text []byte) []byte {
	head := magic + strconv.Itoa(version) + " number=" + strconv.FormatInt(number, 10) + " bytes=" + strconv.Itoa(len(text))
	return append([]byte(head+" "+checksum([]byte(head), text)+"\n"), text...)
}

// place returns an offset at which size bytes do not overlap the current version.
func place(now slot, size int) int {
	if now.offset >= size || now.number == 0 {
		return 0
	}
	return aligned(now.end)
}

func aligned(n int) int { return (n + align - 1) / align * align }

// wiping makes every version unreadable except those at the given offsets.
func wiping(all []slot, but ...int) (patches []patch) {
	for _, s := range all {
		if !slices.Contains(but, s.offset) {
			patches = append(patches, patch{s.offset, bytes.Repeat([]byte{'\n'}, len(magic))})
		}
	}
	return patches
}
