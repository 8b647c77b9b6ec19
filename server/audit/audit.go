// Package audit keeps a log of sign-ins, refusals and administration: an append-only file whose lines are chained.
//
// Each line is a JSON object that begins with prev, the SHA-256 of the previous line without its end, in hexadecimal; prev of the first line
// is empty. So a line that was changed, removed or inserted breaks the chain, which anybody can check with sha256sum. Missing
// lines at the end show only in comparison with a copy of the last hash, or of the log, in another place.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// The events.
const (
	SignedIn  = "signed-in"  // a user's session that this server has not seen lately
	SignedOut = "signed-out" // a browser's user
	Refused   = "refused"    // a request without a user, or one that its user may not make
	Break     = "break"      // the lock of another owner is about to be ended
	Delete    = "delete"     // an administrator is about to delete a document
	Backup    = "backup"     // an administrator is about to read everything
	Reloaded  = "reloaded"   // a file of users or rules has changed; a reason says why it is not in use
)

// Entry is an event of the log. Path is the path of the request without the query, which may hold secrets.
type Entry struct {
	Event    string     `json:"event"`
	User     string     `json:"user,omitempty"`
	HolderID string     `json:"holder_id,omitempty"`
	Address  string     `json:"address,omitempty"`
	Method   string     `json:"method,omitempty"`
	Path     string     `json:"path,omitempty"`
	Status   int        `json:"status,omitempty"`
	Paths    [][]string `json:"paths,omitempty"` // of the lock
	Holder   string     `json:"holder,omitempty"`
	Token    int64      `json:"token,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	File     string     `json:"file,omitempty"`
}

type line struct {
	Prev string `json:"prev"`
	At   string `json:"at"`
	Entry
}

// Log is an open log. A nil Log discards all entries.
type Log struct {
	path string

	mu     sync.Mutex
	file   file
	prev   string
	cut    bool // the file ends in the middle of a line
	unsure bool // a part of a line may be at the end of the file, so prev and cut must be found again
}

// file is what a log uses of an [os.File].
type file interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

var errInUse = errors.New("it is in use by another server; give each server a file of its own")

// Open opens or creates a log, and continues its chain. It fails while another log is open with that file: two chains in one
// file would break each other.
func Open(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, file: file}
	if err = lockRegular(file); err == nil {
		err = l.resume()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the audit log %s cannot be used: %w", path, err), file.Close())
	}
	return l, nil
}

// lockRegular locks a file on a disk. A terminal, for example, may have several writers.
func lockRegular(file *os.File) error {
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = lock(file)
	}
	return err
}

// Reopen goes on in the file that has the path of the log now, if another program has renamed the former one. The chain goes on too. After
// an error the former file stays in use.
func (l *Log) Reopen() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.repair(); err != nil {
		return err
	}
	former, err := l.file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(l.path); err == nil && os.SameFile(former, now) {
		return nil
	}
	next, err := Open(l.path)
	if err != nil {
		return err
	}
	now, err := next.file.Stat()
	if err != nil {
		return errors.Join(err, next.Close())
	}
	if now.Size() == 0 {
		next.prev = l.prev
	}
	err = l.file.Close()
	l.file, l.prev, l.cut = next.file, next.prev, next.cut
	return err
}

// repair makes a part of a line that could not be removed a line of the chain, like one that a crash cut off.
func (l *Log) repair() (err error) {
	if l.unsure {
		err = l.resume()
		l.unsure = err != nil
	}
	return err
}

// resume finds the last line. One that a crash cut off is ended by the next write.
func (l *Log) resume() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	var last []byte
	for begin := info.Size(); begin > 0; {
		step := min(begin, 64<<10)
		begin -= step
		part := make([]byte, step)
		if _, err := l.file.ReadAt(part, begin); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last = slices.Concat(part, last)
		text := bytes.TrimSuffix(last, []byte("\n"))
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 || begin == 0 {
			l.prev, l.cut = hashOf(text[i+1:]), len(text) == len(last)
			return nil
		}
	}
	return nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Write adds an entry. With lasting it is on the disk when Write returns.
func (l *Log) Write(e Entry, lasting bool) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.repair(); err != nil {
		return err
	}
	text, err := json.Marshal(line{l.prev, time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"), e})
	if err != nil {
		return err
	}
	written := append(text, '\n')
	if l.cut {
		written = append([]byte("\n"), written...)
	}
	n, err := l.file.Write(written)
	if err != nil {
		return errors.Join(err, l.takeBack(n))
	}
	l.prev, l.cut = hashOf(text), false
	if lasting {
		err = l.file.Sync()
	}
	return err
}

// takeBack removes what was written of a line, so that the chain stays whole. If that fails, as in a file that may only grow, the part
// stays a line of its own.
func (l *Log) takeBack(written int) error {
	if written == 0 {
		return nil
	}
	info, err := l.file.Stat()
	if err == nil {
		err = l.file.Truncate(info.Size() - int64(written))
	}
	l.unsure = err != nil
	return err
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
