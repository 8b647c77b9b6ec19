package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/client"
)

// lockOptions are the flags of holdfast lock.
type lockOptions struct {
	access
	wait, ttl, grace time.Duration
	shared           bool
	slots            int
	conflict         int
}

// restPause is the pause between two looks at what a program has left behind.
const restPause = 20 * time.Millisecond

func prepareLock(flags *flag.FlagSet) func(context.Context, call) error {
	o := &lockOptions{}
	o.access.flags(flags)
	flags.DurationVar(&o.wait, "wait", -time.Second, "how long to wait for the lock; 0 does not wait, a negative time waits forever")
	flags.DurationVar(&o.ttl, "ttl", 0, "time without a heartbeat after which the lock ends; 0 is the server's default")
	flags.DurationVar(&o.grace, "grace", 5*time.Second, "time from SIGTERM to SIGKILL for CMD when the lock is lost")
	flags.BoolVar(&o.shared, "shared", false, "acquire a shared lock: other shared locks are admitted")
	flags.IntVar(&o.slots, "slots", 1, "`number` of holders that the lock admits at once")
	flags.IntVar(&o.conflict, "conflict-exit-code", exitFailed, "exit `code` if the lock is not granted in time")
	return o.run
}

func (o *lockOptions) run(ctx context.Context, use call) error {
	request := client.Request{TTL: o.ttl, Wait: max(o.wait, client.Forever), Slots: o.slots, Mode: client.Exclusive}
	if o.shared {
		request.Mode = client.Shared
	}
	if len(use.args) == 1 && !isPlace(use.args[0]) {
		request.Document = use.args[0]
	} else {
		for _, arg := range use.args {
			path, err := pathOf(arg)
			if err != nil {
				return err
			}
			request.Paths = append(request.Paths, path)
		}
	}
	return o.with(ctx, func(c *client.Client) error {
		lease, err := c.Acquire(ctx, request)
		switch {
		case errors.Is(err, client.ErrDenied), errors.Is(err, client.ErrTimeout), errors.Is(err, client.ErrDeadlock):
			return &exitError{o.conflict, err}
		case err != nil:
			return err
		}
		ended := o.guarded(ctx, use, lease)
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, client.ErrLost) {
			fmt.Fprintln(use.stderr, "holdfast:", err) // the code is that of CMD
		}
		return ended
	})
}

// guarded runs the program under the lease and returns how it ended.
func (o *lockOptions) guarded(ctx context.Context, use call, lease *client.Lease) error {
	runtime.LockOSThread() // the end of this thread would end the program: see endWithParent
	defer runtime.UnlockOSThread()
	cmd := exec.Command(use.program[0], use.program[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = use.stdin, use.stdout, use.stderr
	fence := lease.Fence()
	cmd.Env = append(os.Environ(), "HOLDFAST_TOKEN="+strconv.FormatInt(fence.Token, 10), "HOLDFAST_SESSION="+fence.Session)
	cmd.Env = append(cmd.Env, o.environment()...)
	signals, stop := forwarded()
	defer stop()
	kill := prepareProcess(cmd)
	if ctx.Err() != nil {
		return &exitError{code: exitSignal + int(syscall.SIGTERM)} // a signal came before there was a program to forward it to
	}
	if err := cmd.Start(); err != nil {
		code := exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = exitNotFound
		}
		return &exitError{code, err}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	lost, late := lease.Lost(), (<-chan time.Time)(nil)
	for {
		select {
		case err := <-ended:
			if lease.Err() != nil {
				o.endRest(kill, late)
				return &exitError{exitLost, lease.Err()}
			}
			return programEnd(err)
		case s := <-signals:
			forward(s, kill, lease)
		case <-lost:
			fmt.Fprintf(use.stderr, "holdfast: %v; %s ends\n", lease.Err(), use.program[0])
			kill(syscall.SIGTERM)
			lost, late = nil, time.After(o.grace)
		case <-late:
			kill(syscall.SIGKILL)
			late = nil
		}
	}
}

// endRest ends what the program has started and left behind when it ended. late says when the time for that is over; nil means that it has not
// begun, or that everything was killed.
func (o *lockOptions) endRest(kill func(syscall.Signal) bool, late <-chan time.Time) {
	if late == nil {
		kill(syscall.SIGTERM)
		late = time.After(o.grace)
	}
	for kill(0) {
		select {
		case <-late:
			kill(syscall.SIGKILL)
			return
		case <-time.After(restPause):
		}
	}
}

// programEnd is the exit code of the program.
func programEnd(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &exitError{code: exitSignal + int(status.Signal())}
	}
	return &exitError{code: exit.ExitCode()}
}
