// Command holdfast serves locks, contents of documents and rooms between machines, and is a client of such a server:
//
//	holdfast serve [--addr 127.0.0.1:8080] [--data-dir ./holdfast-data | --etcd host:port,…]
//	holdfast lock DOC [--wait 30s] -- CMD
//
// It serves the demo editor and the npm package's files at the same address. "holdfast help" lists all commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/web"
)

// errUsage means that the command line is wrong and that the reason has been printed.
var errUsage = errors.New("wrong usage")

// exitError ends the program with a code. Err is printed, if it is not nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }
func (e *exitError) Unwrap() error { return e.err }

// The exit codes, besides that of CMD. Those above 64 are of sysexits(3).
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 69
	exitLost        = 75
	exitRefused     = 77
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // and the number of the signal
)

func main() {
	os.Exit(execute(os.Args[1:], web.Site()))
}

// execute runs until the command line has been carried out or a signal ends it, and returns the exit code.
func execute(args []string, site fs.FS) int {
	ctx, stop := untilSignal()
	defer stop()
	return exitCode(run(ctx, args, site, os.Stdout, os.Stderr), os.Stderr)
}

// exitCode prints an error and returns the code to exit with.
func exitCode(err error, stderr io.Writer) int {
	code := exitFailed
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.As(err, &exit):
		if code, err = exit.code, exit.err; err == nil {
			return code
		}
	case errors.Is(err, client.ErrUnreachable):
		code = exitUnreachable
	case errors.Is(err, client.ErrUnauthenticated), errors.Is(err, client.ErrNotAllowed):
		code = exitRefused
	case errors.Is(err, client.ErrAborted):
		code = exitSignal + int(syscall.SIGINT)
	}
	fmt.Fprintln(stderr, "holdfast:", err)
	return code
}

// run carries out one command line. It returns when the command has ended or ctx is done.
func run(ctx context.Context, args []string, site fs.FS, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage())
		return errUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage())
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, call{args: args[1:], site: site, stdin: os.Stdin, stdout: stdout, stderr: stderr})
		}
	}
	fmt.Fprintf(stderr, "holdfast has no command %q\n%s", args[0], usage())
	return errUsage
}
