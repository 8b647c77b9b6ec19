package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/disk"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/backup"
)

// stdio is the name of the standard input or output as a file.
const stdio = "-"

func prepareBackup(flags *flag.FlagSet) func(context.Context, call) error {
	var a access
	a.flags(flags)
	return func(ctx context.Context, use call) error {
		return a.with(ctx, func(c *client.Client) error {
			if use.args[0] == stdio {
				_, err := fetchBackup(ctx, c, use.stdout)
				return err
			}
			sum, err := saveBackup(ctx, c, use.args[0])
			if err == nil {
				fmt.Fprintf(use.stdout, "%s: %v\n", use.args[0], sum)
				err = lost(sum)
			}
			return err
		})
	}
}

// fetchBackup writes an archive and checks it on the way.
func fetchBackup(ctx context.Context, c *client.Client, w io.Writer) (backup.Summary, error) {
	checked, arriving := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := c.Backup(ctx, io.MultiWriter(w, arriving))
		fetched <- err
		_ = arriving.CloseWithError(err) // without an error, the archive has ended
	}()
	sum, err := backup.Check(checked)
	_, _ = io.Copy(io.Discard, checked) // what follows the end of an archive
	if failed := <-fetched; failed != nil {
		return sum, failed
	}
	return sum, err
}

// saveBackup replaces a file by an archive once the archive is whole and on the disk.
func saveBackup(ctx context.Context, c *client.Client, path string) (sum backup.Summary, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return sum, fmt.Errorf("the backup cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	sum, err = fetchBackup(ctx, c, file)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return sum, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return sum, err
	}
	return sum, disk.Sync(filepath.Dir(path))
}

// lost reports contents that the server has lost, as an error.
func lost(sum backup.Summary) error {
	names := append(sum.Missing, sum.Changed...)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the server has lost the bytes of %d contents, so the backup does not have them: %s", len(names), strings.Join(names[:min(len(names), 10)], ", "))
}

func prepareRestore(flags *flag.FlagSet) func(context.Context, call) error {
	c := server.DefaultConfig()
	flags.StringVar(&c.DataDir, "data-dir", c.DataDir, "empty `directory` to restore into")
	flags.StringVar(&c.Blobs, "blobs", "", "`place` of the contents, as for holdfast serve; by default in the data directory")
	return func(ctx context.Context, use call) (err error) {
		from := use.stdin
		if use.args[0] != stdio {
			file, err := os.Open(use.args[0])
			if err != nil {
				return fmt.Errorf("the backup cannot be read: %w", err)
			}
			defer func() { _ = file.Close() }()
			from = file
		}
		sum, err := backup.Restore(ctx, from, c.DataDir, c.Blobs, slog.New(slog.DiscardHandler))
		if err != nil {
			return fmt.Errorf("restore %s into %s: %w", use.args[0], c.DataDir, err)
		}
		fmt.Fprintf(use.stdout, "%s has %v\nStart it with: holdfast serve --data-dir %s\n", c.DataDir, sum, c.DataDir)
		return lost(sum)
	}
}
