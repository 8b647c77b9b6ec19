package opfs

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// A file holds versions of a text, each in a slot of its own: a header line and the text.
// The one with the highest number counts. A new version is written to a place that the
// present one does not touch, so the present one is whole until the new one is; and it
// destroys the version before the present one, so that a file whose newest version was
// damaged later, unlike one that was never damaged, lacks the version that its newest
// readable one says came before. This is the shadow paging of databases (Lorie, 1977) in
// its smallest form.
//
// The header, with the checksum of the header up to it and of the text:
//
//	holdfast-lock 1 number=8 before=7 bytes=123 crc=89abcdef
const (
	magic      = "holdfast-lock "
	version    = 1
	align      = 512
	headerSize = 160     // no header is longer
	maxImage   = 4 << 20 // a larger file is not ours
)

// slot is one version in a file.
type slot struct {
	number int64
	before int64 // the version that is in the file too, or 0 where there is none
	text   []byte
	offset int
	end    int
}

var (
	errTorn   = errors.New("the newest version of the file is damaged")
	errFuture = errors.New("the file was written by a newer version of Holdfast")
	errNoText = errors.New("the file is empty or unreadable")
)

// newest returns the version of the file that counts, and all that are whole. With
// errTorn it returns the newest that could be read: a later one may have been lost.
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
	case now.before == 0:
		return now, all, nil
	}
	for _, s := range all {
		if s.number == now.before {
			return now, all, nil
		}
	}
	return now, all, errTorn
}

// readSlot reads the slot that begins at offset, if there is a whole one.
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
	if len(fields) != 5 {
		return s, 0, false
	}
	var values [4]int64
	for i, name := range []string{"", "number=", "before=", "bytes="} {
		digits, found := strings.CutPrefix(fields[i], name)
		n, err := strconv.ParseInt(digits, 10, 64)
		if !found || err != nil || n < 0 {
			return s, 0, false
		}
		values[i] = n
	}
	size := values[3]
	if size > int64(len(image)-end-1) {
		return s, 0, false
	}
	text := image[end+1:][:size]
	head := image[:bytes.LastIndexByte(image[:end], ' ')]
	if fields[4] != checksum(head, text) {
		return s, 0, false
	}
	s = slot{number: values[1], before: values[2], text: text, offset: offset, end: offset + end + 1 + int(size)}
	return s, values[0], true
}

func checksum(head, text []byte) string {
	return fmt.Sprintf("crc=%08x", crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, text))
}

// patch is one write to a file.
type patch struct {
	offset int
	data   []byte
}

// following returns the writes that make text the version after now, in their order.
// All of them leave now as it is. The versions older than it are made unreadable first.
func following(now slot, all []slot, text []byte) []patch {
	next := newSlot(now.number+1, now.number, text)
	offset := place(now, len(next))
	patches := wiping(all, now, offset)
	return append(patches, patch{offset, next})
}

// restarting returns the writes that make text the only version of a file in which
// something is wrong. The present one, where there is one, is made unreadable last.
func restarting(now slot, all []slot, number int64, text []byte) []patch {
	next := newSlot(max(now.number+1, number), 0, text)
	offset := place(now, len(next))
	return append([]patch{{offset, next}}, wiping(all, slot{offset: -1}, offset)...)
}

func newSlot(number, before int64, text []byte) []byte {
	head := fmt.Appendf(nil, "%s%d number=%d before=%d bytes=%d", magic, version, number, before, len(text))
	return fmt.Appendf(head, " %s\n%s", checksum(head, text), text)
}

// place returns an offset at which size bytes do not touch the present version.
func place(now slot, size int) int {
	if now.offset >= size || now.number == 0 {
		return 0
	}
	return (now.end + align - 1) / align * align
}

// wiping makes every version unreadable but now and what begins at offset.
func wiping(all []slot, now slot, offset int) (patches []patch) {
	for _, s := range all {
		if s.offset != now.offset && s.offset != offset {
			patches = append(patches, patch{s.offset, bytes.Repeat([]byte{'\n'}, len(magic))})
		}
	}
	return patches
}
