package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/client"
)

func prepareLocks(flags *flag.FlagSet) func(context.Context, call) error {
	var a access
	a.flags(flags)
	asJSON := flags.Bool("json", false, "print JSON, in the form of the server's interface")
	return func(ctx context.Context, use call) error {
		path := []string{"documents"}
		if len(use.args) > 0 {
			var err error
			if path, err = pathOf(use.args[0]); err != nil {
				return err
			}
		}
		return a.with(ctx, func(c *client.Client) error {
			list, err := c.Locks(ctx, path...)
			if err != nil {
				return err
			}
			if *asJSON {
				return json.NewEncoder(use.stdout).Encode(list)
			}
			return printLocks(use.stdout, list)
		})
	}
}

func printLocks(stdout io.Writer, list client.Listing) error {
	table := newTable(stdout, "STATE", "HOLDER", "MODE", "SINCE", "UNTIL", "PATHS", "LEASE")
	for _, h := range list.Holders {
		table.row("holds", h.HolderName, h.Mode, clockTime(h.LockedAt), clockTime(h.ExpiresAt), places(h.Paths), h.LeaseID)
	}
	for _, w := range list.Waiters {
		table.row("waits", w.HolderName, w.Mode, clockTime(w.Since), "", places(w.Paths), "")
	}
	return table.Flush()
}

func clockTime(t time.Time) string { return t.Local().Format(time.TimeOnly) }

func places(paths [][]string) string {
	texts := make([]string, len(paths))
	for i, p := range paths {
		texts[i] = strings.Join(p, "/")
	}
	return strings.Join(texts, ", ")
}

func prepareBreak(flags *flag.FlagSet) func(context.Context, call) error {
	var a access
	a.flags(flags)
	reason := flags.String("reason", "", "`text` for the holder and the audit log")
	lease := flags.String("lease", "", "`id` of the lease to end, from holdfast locks, instead of a document")
	return func(ctx context.Context, use call) error {
		switch {
		case *reason == "":
			return errors.New("say why with --reason: the holder loses the lock, and the text goes to the audit log")
		case (*lease == "") == (len(use.args) == 0):
			return errors.New("name a document or a --lease")
		}
		return a.with(ctx, func(c *client.Client) error {
			if *lease != "" {
				return c.BreakLease(ctx, *lease, *reason)
			}
			return c.Break(ctx, use.args[0], *reason)
		})
	}
}

// table aligns columns.
type table struct{ *tabwriter.Writer }

func newTable(stdout io.Writer, head ...any) table {
	t := table{tabwriter.NewWriter(stdout, 0, 4, 2, ' ', 0)}
	t.row(head...)
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = strings.Map(printable, fmt.Sprint(c))
	}
	fmt.Fprintln(t, strings.Join(texts, "\t"))
}

// printable keeps what others have chosen from moving the cursor of a terminal, from turning the direction of a line and from being
// invisible.
func printable(r rune) rune {
	if !unicode.IsGraphic(r) {
		return '?'
	}
	return r
}
