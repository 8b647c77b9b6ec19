package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// command is a word after "holdfast".
type command struct {
	name, arguments, about string
	// most is how many arguments there may be at most; least is 1 if the usage shows none of them in brackets.
	least, most int
	// program is set if a program to run follows after --.
	program bool
	// prepare defines the flags and returns what carries the command out.
	prepare func(*flag.FlagSet) func(context.Context, call) error
}

// call is one use of a command.
type call struct {
	args           []string
	program        []string // after --
	site           fs.FS
	stdin          io.Reader
	stdout, stderr io.Writer
}

const many = 16

// commands returns all commands, in the order of the usage.
func commands() []command {
	return []command{
		{name: "serve", about: "serve the API, the demo and the package's files", prepare: prepareServe},
		{name: "lock", arguments: "DOC… -- CMD", about: "hold a lock while a program runs", least: 1, most: many, program: true, prepare: prepareLock},
		{name: "locks", arguments: "[DOC]", about: "list the holders and the waiters", most: 1, prepare: prepareLocks},
		{name: "break", arguments: "DOC", about: "end the lock of another owner", most: 1, prepare: prepareBreak},
		{name: "cat", arguments: "DOC", about: "print the content of a document", least: 1, most: 1, prepare: prepareCat},
		{name: "put", arguments: "DOC", about: "write the content of a document, from the standard input", least: 1, most: 1, prepare: preparePut},
		{name: "backup", arguments: "FILE", about: "copy everything that a server has into a file", least: 1, most: 1, prepare: prepareBackup},
		{name: "restore", arguments: "FILE", about: "restore a backup into an empty data directory", least: 1, most: 1, prepare: prepareRestore},
		{name: "completion", arguments: "bash|zsh", about: "print the completion of commands for a shell", least: 1, most: 1, prepare: prepareCompletion},
		{name: "version", about: "print the version", prepare: prepareVersion},
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("Usage:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  holdfast %-20s %s\n", strings.TrimSpace(c.name+" "+c.arguments), c.about)
	}
	b.WriteString("\nholdfast COMMAND -h lists the flags. Each flag is also an environment variable: --data-dir is HOLDFAST_DATA_DIR.\n" +
		"A DOC with a slash is a place: book/chapter, or /pool.\n")
	return b.String()
}

func (c command) run(ctx context.Context, use call) error {
	flags, do := c.flags(use.stderr)
	use.args, use.program = split(use.args, c.program)
	args, err := readFlags(flags, use.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case errors.Is(err, errUsage):
		return err
	case err != nil:
		fmt.Fprintf(use.stderr, "holdfast %s: %v\n", c.name, err)
		return errUsage
	case len(args) > c.most:
		return c.misused(use.stderr, fmt.Sprintf("takes no argument %q", args[c.most]))
	case len(args) < c.least:
		return c.misused(use.stderr, "needs an argument")
	case c.program && len(use.program) == 0:
		return c.misused(use.stderr, "needs a program to run after --")
	}
	use.args = args
	return do(ctx, use)
}

func (c command) misused(stderr io.Writer, why string) error {
	fmt.Fprintf(stderr, "holdfast %s %s\n\n%s", c.name, why, usage())
	return errUsage
}

// flags returns the flags of the command and the function that runs it.
func (c command) flags(stderr io.Writer) (*flag.FlagSet, func(context.Context, call) error) {
	flags := flag.NewFlagSet("holdfast "+c.name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	do := c.prepare(flags)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Usage: holdfast %s\n\n%s.\n", strings.TrimSpace(c.name+" [flags] "+c.arguments), strings.ToUpper(c.about[:1])+c.about[1:])
		if text := details[c.name]; text != "" {
			fmt.Fprintf(stderr, "\n%s\n", text)
		}
		fmt.Fprintln(stderr, "\nFlags:")
		flags.PrintDefaults()
	}
	return flags, do
}

// split separates the program after -- from the arguments.
func split(args []string, program bool) (before, after []string) {
	if i := slices.Index(args, "--"); program && i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}
