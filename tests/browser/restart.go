package browser

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Restart sends the browser's main process a signal, as a user or a shutdown does, and starts the browser again with
// the same profile. SIGKILL goes to every process of the browser. All tabs are gone, and the test opens new ones.
// Restart returns the moment before the signal.
func (b *Browser) Restart(t testing.TB, signal syscall.Signal) time.Time {
	t.Helper()
	pid := b.process.Process.Pid
	at := time.Now()
	if err := b.stop(pid, signal); err != nil {
		t.Fatalf("browser: restart: %v", err)
	}
	if err := b.run(); err != nil {
		t.Fatalf("browser: restart: %v", err)
	}
	return at
}

func (b *Browser) stop(pid int, signal syscall.Signal) error {
	to := pid
	if signal == syscall.SIGKILL {
		to = -pid
	}
	if err := syscall.Kill(to, signal); err != nil {
		return err
	}
	// Chromium's orderly end takes seconds, and longer on a busy machine.
	ended := gone(-pid, 2*Limit)
	b.cancel()
	if !ended {
		return fmt.Errorf("processes of group %d are left after %v", pid, signal)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tabs, b.spare = nil, nil
	return nil
}

// Stored reports whether a file in an origin private file system contains the text, on the disk of this machine. It
// reads the disk directly, so the text that it finds survives the end of every browser process.
func (b *Browser) Stored(text string) bool { return StoredBelow(b.profile, "/File System/", text) }

// StoredBelow is Stored for the profile of any browser. part is a part of the path of each file in a private file
// system.
func StoredBelow(profile, part, text string) bool {
	found := false
	_ = filepath.WalkDir(profile, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found || !entry.Type().IsRegular() || !strings.Contains(path, part) {
			return nil //nolint:nilerr // files are created and removed meanwhile
		}
		content, err := os.ReadFile(path)
		found = err == nil && stored(content, text)
		return nil
	})
	return found
}

// The slots of a draft's file, see opfs/draftfile.js.
const (
	draftMagic = "HFDRAFT1"
	draftSlots = 3
	draftBlock = 4096
	slotText   = 20
)

// stored reports whether a file contains the text. A draft's content is written before the slot that names it.
// Without that slot, the file does not contain the content yet.
func stored(file []byte, text string) bool {
	at := bytes.Index(file, []byte(text))
	if at < draftSlots*draftBlock || !slices.Contains([]string{draftMagic, strings.Repeat("\x00", len(draftMagic))}, string(file[:len(draftMagic)])) {
		return at >= 0
	}
	for slot := range draftSlots {
		head := file[slot*draftBlock:]
		if string(head[:len(draftMagic)]) != draftMagic {
			continue
		}
		var header struct{ Offset, Bytes int }
		length := int(binary.LittleEndian.Uint32(head[slotText-4:]))
		if json.Unmarshal(head[slotText:min(slotText+length, draftBlock)], &header) == nil &&
			header.Offset <= at && at+len(text) <= header.Offset+header.Bytes {
			return true
		}
	}
	return false
}

// WaitStored waits until the text is stored, and fails the test after the limit.
func (b *Browser) WaitStored(t testing.TB, text string, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); !b.Stored(text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("browser: %q is in no file of the browser after %v", text, limit)
		}
	}
}
