// Command holdfast is the server: it provides document locks and rooms between machines, over an etcd of its own or
// an external one. It serves the demo editor and the npm package's files at the same address:
//
//	holdfast serve [--addr 127.0.0.1:8080] [--data-dir ./holdfast-data | --etcd host:port,…]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/web"
)

const usage = `Usage:

  holdfast serve [--addr 127.0.0.1:8080]    serve the API, the demo and the package's files
                                            (holdfast serve -h lists all flags)
`

// errUsage means that the command line is wrong and that the reason has been printed.
var errUsage = errors.New("wrong usage")

func main() {
	os.Exit(command(os.Args[1:], web.Site()))
}

// command runs until the command line has been carried out or a signal ends it, and returns the exit code.
func command(args []string, site fs.FS) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once, in case the graceful stop takes too long.
	context.AfterFunc(ctx, stop)
	switch err := run(ctx, args, site, os.Stdout, os.Stderr); {
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		return 1
	}
	return 0
}

// run carries out one command line. It returns when the command has ended or ctx is done.
func run(ctx context.Context, args []string, site fs.FS, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	switch args[0] {
	case "serve":
		options := defaultOptions()
		flags := flag.NewFlagSet("holdfast serve", flag.ContinueOnError)
		flags.SetOutput(stderr)
		options.flags(flags)
		err := flags.Parse(args[1:])
		switch {
		case errors.Is(err, flag.ErrHelp):
			return nil
		case err != nil:
			return errUsage
		case flags.NArg() > 0:
			fmt.Fprintf(stderr, "holdfast serve takes no argument, but got %q\n%s", flags.Arg(0), usage)
			return errUsage
		}
		return serve(ctx, options, site, stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	}
	fmt.Fprintf(stderr, "holdfast has no command %q\n%s", args[0], usage)
	return errUsage
}
