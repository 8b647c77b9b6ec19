package main

import (
	"errors"
	"fmt"
	"testing"
)

// program is the testing.TB of a program without tests, for the browser harness. It implements the methods that the
// harness calls. A fatal error ends the program in an orderly way.
type program struct {
	testing.TB
	cleanups []func()
	failures []error
}

// fatal is the panic value of Fatal.
type fatal struct{ error }

func (p *program) Helper()          {}
func (p *program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *program) Errorf(format string, args ...any) {
	p.failures = append(p.failures, fmt.Errorf(format, args...))
}

func (p *program) Failed() bool { return len(p.failures) > 0 }

func (p *program) Fatal(args ...any)                 { panic(fatal{errors.New(fmt.Sprint(args...))}) }
func (p *program) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

// end runs the cleanups and returns the errors. recovered is the result of recover.
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
