package blobs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

const (
	// keptOpen is how many blobs stay open while they are read. A client decides how long that takes, and may read hundreds over one
	// connection, but the store ends if the process can open no more files.
	keptOpen = 48
	// openedAtOnce is how many of the other blobs are open at a time, each for one read.
	openedAtOnce = 16
	// writtenAtOnce is how many blobs are written at a time. Over one connection, a client may save hundreds of documents at once.
	writtenAtOnce = 64
)

// places are the places of the blobs that are open. Each of these is an open file of the process: a file, or a connection.
type places struct {
	kept, turns, writes chan struct{}
}

func newPlaces() places {
	return places{make(chan struct{}, keptOpen), make(chan struct{}, openedAtOnce), make(chan struct{}, writtenAtOnce)}
}

// keep takes the place of a blob that stays open until end. It returns nil if there is none.
func (p places) keep() (end func()) {
	select {
	case p.kept <- struct{}{}:
		return sync.OnceFunc(func() { <-p.kept })
	default:
		return nil
	}
}

// turn waits for its turn to open a blob for one read.
func (p places) turn(ctx context.Context, read func() error) error {
	return inTurn(ctx, p.turns, read)
}

// inTurn calls do when there is room in turns for it.
func inTurn(ctx context.Context, turns chan struct{}, do func() error) error {
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open opens the blob's file. Above keptOpen, the reader opens the file for each read, and fails if the blob is removed meanwhile.
func (f *Files) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	if end := f.places.keep(); end != nil {
		file, err := openFile(path)
		if err != nil {
			end()
			return nil, err
		}
		return &keptFile{File: file, end: end}, nil
	}
	r := &pieces{ctx: ctx, path: path, places: f.places}
	err = r.open(func(file *os.File) error {
		info, err := file.Stat()
		if err == nil {
			r.size = info.Size()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func openFile(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return file, err
}

// keptFile is a file that is open until Close.
type keptFile struct {
	*os.File
	end func()
}

func (k *keptFile) Close() error {
	defer k.end()
	return k.File.Close()
}

// pieces reads a file that is open only during a read.
type pieces struct {
	cursor
	ctx    context.Context
	path   string
	places places
}

func (p *pieces) open(use func(*os.File) error) error {
	return p.places.turn(p.ctx, func() error {
		file, err := openFile(p.path)
		if err != nil {
			return err
		}
		return errors.Join(use(file), file.Close())
	})
}

func (p *pieces) Read(b []byte) (n int, err error) {
	if p.offset >= p.size {
		return 0, io.EOF
	}
	err = p.open(func(file *os.File) error {
		n, err = file.ReadAt(b[:min(int64(len(b)), p.size-p.offset)], p.offset)
		return err
	})
	p.offset += int64(n)
	return n, err
}

func (*pieces) Close() error { return nil }
