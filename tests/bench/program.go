package main

import (
	"errors"
	"fmt"
	"testing"
)

// program is the testing.TB of a program that is no test, for the browser harness. It
// has what the harness calls; a fatal error ends the program in order.
type program struct {
	testing.TB
	cleanups []func()
	failures []error
}

// fatal is what Fatal panics with.
type fatal struct{ error }

func (p *program) Helper()          {}
func (p *program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *program) Errorf(format string, args ...any) {
	p.failures = append(p.failures, fmt.Errorf(format, args...))
}

func (p *program) Failed() bool { return len(p.failures) > 0 }

func (p *program) Fatal(args ...any)                 { panic(fatal{errors.New(fmt.Sprint(args...))}) }
func (p *program) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

// end cleans up and returns what failed. recovered is what recover returned.
func (p *program) end(recovered any) error {
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		p.cleanups[i]()
	}
	if f, ok := recovered.(fatal); ok {
		p.failures = append(p.failures, f)
	} else if recovered != nil {
		panic(recovered)
	}
	return errors.Join(p.failures...)
}
