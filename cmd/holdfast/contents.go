package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/client"
)

func prepareCat(flags *flag.FlagSet) func(context.Context, call) error {
	var a access
	a.flags(flags)
	generation := flags.String("generation", "", "`name` of an earlier content; --history lists them")
	history := flags.Bool("history", false, "list the earlier contents of the document, the latest first")
	return func(ctx context.Context, use call) error {
		return a.with(ctx, func(c *client.Client) error {
			if *history {
				list, err := c.History(ctx, use.args[0])
				if err != nil {
					return err
				}
				table := newTable(use.stdout, "GENERATION", "SAVED", "BYTES", "ETAG")
				for _, g := range list {
					table.row(g.Generation, g.SavedAt.Local().Format(time.DateTime), g.Size, g.ETag)
				}
				return table.Flush()
			}
			content, err := c.Get(ctx, use.args[0], client.GetOptions{Generation: *generation})
			if err == nil {
				_, err = use.stdout.Write(content.Data)
			}
			return err
		})
	}
}

func preparePut(flags *flag.FlagSet) func(context.Context, call) error {
	var a access
	a.flags(flags)
	wait := flags.Duration("wait", 0, "how long to wait for the lock; a negative time waits forever")
	token := flags.Int64("token", 0, "`token` of the lock to write under; holdfast lock sets its variable")
	session := flags.String("session", "", "`session` that has the lock; holdfast lock sets its variable")
	var put client.PutOptions
	flags.StringVar(&put.IfMatch, "if-match", "", "write only if the current content has this `etag`")
	flags.BoolVar(&put.IfAbsent, "if-absent", false, "write only if there is no content")
	return func(ctx context.Context, use call) error {
		if (*token == 0) != (*session == "") {
			return errors.New("--token and --session go together: both are of one lock")
		}
		data, err := io.ReadAll(use.stdin)
		if err != nil {
			return fmt.Errorf("the standard input cannot be read: %w", err)
		}
		return a.with(ctx, func(c *client.Client) error {
			write := func(ctx context.Context, f client.Fence) error {
				info, err := c.Put(ctx, f, use.args[0], data, put)
				if err == nil {
					fmt.Fprintln(use.stdout, info.ETag)
				}
				return err
			}
			if *token != 0 {
				return write(ctx, client.Fence{Session: *session, Token: *token})
			}
			return c.With(ctx, client.Request{Document: use.args[0], Wait: max(*wait, client.Forever)}, func(ctx context.Context, l *client.Lease) error {
				return write(ctx, l.Fence())
			})
		})
	}
}
