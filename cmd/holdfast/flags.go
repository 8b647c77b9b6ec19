package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// readFlags parses flags, which may stand between the arguments, and returns the arguments. The environment sets the flags that the
// command line does not set. The configuration file, if the command has one, sets those that neither sets.
func readFlags(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errUsage // it has been printed
		}
		ended := len(flags.Args()) < len(args) && args[len(args)-len(flags.Args())-1] == "--"
		args = flags.Args()
		if ended || len(args) == 0 {
			return append(rest, args...), fill(flags)
		}
		rest, args = append(rest, args[0]), args[1:]
	}
	return rest, fill(flags)
}

// fill sets the flags that the command line has not set.
func fill(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	flags.VisitAll(func(f *flag.Flag) {
		text, ok := os.LookupEnv(variable(f.Name))
		if !ok || text == "" || given[f.Name] {
			return
		}
		given[f.Name] = true
		if failed := flags.Set(f.Name, text); failed != nil {
			err = errors.Join(err, fmt.Errorf("the environment variable %s: %w", variable(f.Name), failed))
		}
	})
	config := flags.Lookup(configFlag)
	if err != nil || config == nil || config.Value.String() == "" {
		return err
	}
	return readConfig(flags, config.Value.String(), given)
}

const configFlag = "config"

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readConfig reads a file with a line "flag value" or "flag = value" for each flag. A # at the beginning of a line begins a comment.
func readConfig(flags *flag.FlagSet, path string, given map[string]bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the configuration file cannot be read: %w", err)
	}
	seen := map[string]bool{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		entry := strings.TrimSpace(string(line))
		if entry == "" || entry[0] == '#' {
			continue
		}
		name, value := setting(entry)
		problem := func(why string) error { return fmt.Errorf("%s:%d: %s", path, i+1, why) }
		switch f := flags.Lookup(name); {
		case f == nil || name == configFlag:
			return problem(fmt.Sprintf("there is no flag --%s", name))
		case seen[name]:
			return problem(fmt.Sprintf("--%s is there twice", name))
		case given[name]:
			seen[name] = true
			continue
		case value == "" && isBool(f):
			value = "true"
		}
		seen[name] = true
		if err := flags.Set(name, value); err != nil {
			return problem(fmt.Sprintf("--%s: %v", name, err))
		}
	}
	return nil
}

// setting splits "flag value", "flag = value" and "flag=value".
func setting(entry string) (name, value string) {
	end := strings.IndexAny(entry, "= \t")
	if end < 0 {
		end = len(entry)
	}
	value = strings.TrimPrefix(strings.TrimSpace(entry[end:]), "=")
	return strings.TrimLeft(strings.TrimSpace(entry[:end]), "-"), strings.TrimSpace(value)
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
