package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

func prepareVersion(*flag.FlagSet) func(context.Context, call) error {
	return func(_ context.Context, use call) error {
		fmt.Fprintf(use.stdout, "holdfast %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
		return nil
	}
}

// version is that of the module, or the commit that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "(devel)"
}
