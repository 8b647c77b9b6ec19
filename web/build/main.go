// Command build makes the npm package in dist/, the site in web/site/, and its packed form in web/packed/, which the
// server carries, using only Go:
//
//	go run ./web/build
//
// The same sources and Go toolchain give the same bytes, independent of the clone's path. The command fails if a size
// budget is exceeded.
//
// A build with -tags or -out is a variant for tests: it goes only to the folders of -out and -site, and is not
// measured. A build with -debug goes to the package's folder, keeps the names for a debugger, and is not measured
// either.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "web/build:", err)
		os.Exit(1)
	}
}

// options describe what one run builds, and its folders.
type options struct {
	root string // the module's root directory
	out  string // the npm package
	site string // the demo with the package's files; "" for none
	tags string // Go build tags of the Wasm
	pack string // the folder of the package's tarball; "" for none

	debug bool // the Wasm keeps its names for a debugger
}

// variant reports whether this is a build for tests, not the published one.
func (o options) variant() bool {
	return o.out != filepath.Join(o.root, "dist")
}

func parse(root string, args []string) (options, error) {
	flags := flag.NewFlagSet("web/build", flag.ContinueOnError)
	tags := flags.String("tags", "", "build tags for the Wasm, comma-separated; needs -out")
	out := flags.String("out", "", "directory of the npm package (default dist)")
	site := flags.String("site", "", "directory of the site (default web/site, or none with -out)")
	pack := flags.String("pack", "", "directory of the package's npm tarball (default none)")
	debug := flags.Bool("debug", false, "keep the names for a debugger in the Wasm, which makes it much larger")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *tags != "" && *out == "" {
		return options{}, errors.New("-tags needs -out, so that a test build never becomes the package")
	}
	if *debug && *pack != "" {
		return options{}, errors.New("-debug and -pack exclude each other: a build for debugging is not published")
	}
	o := options{root: root, tags: *tags, debug: *debug, out: filepath.Join(root, "dist"), site: filepath.Join(root, "web/site")}
	if *out != "" {
		dir, err := filepath.Abs(*out)
		if err != nil {
			return options{}, err
		}
		o.out, o.site = dir, ""
	}
	if *site != "" {
		dir, err := filepath.Abs(*site)
		if err != nil {
			return options{}, err
		}
		o.site = dir
	}
	if *pack != "" {
		dir, err := filepath.Abs(*pack)
		if err != nil {
			return options{}, err
		}
		o.pack = dir
	}
	if o.tags != "" && (!o.variant() || o.site == filepath.Join(root, "web/site")) {
		return options{}, errors.New("a build with -tags may not go to dist or web/site")
	}
	return o, nil
}

func run(args []string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	o, err := parse(root, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return build(o)
}

// build makes the package, the sites and the tarball that the options ask for.
func build(o options) error {
	version, err := readVersion(o.root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := compileWasm(o); err != nil {
		return err
	}
	if err := bundlePackage(o, version); err != nil {
		return err
	}
	if err := writePackage(o, version); err != nil {
		return err
	}
	if o.site != "" {
		if err := writeSite(o); err != nil {
			return err
		}
	}
	if !o.variant() {
		if err := packSite(o.site, filepath.Join(o.root, "web", "packed")); err != nil {
			return err
		}
	}
	if !o.variant() && !o.debug {
		if err := checkSizes(o); err != nil {
			return err
		}
	}
	if o.pack == "" {
		return nil
	}
	path, err := writeTarball(o, o.pack, version)
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

// checkSizes prints the sizes of the package, and fails if they exceed the budgets.
func checkSizes(o options) error {
	sizes, err := measureAll(o.out, filepath.Join(o.root, ".cache", "sizes.json"))
	if err != nil {
		return err
	}
	fmt.Print(table(sizes, budgets))
	return errors.Join(exceeded(sizes, budgets)...)
}

// moduleRoot finds the root of the module that contains the current directory.
func moduleRoot() (string, error) {
	mod, err := goOutput("env", "GOMOD")
	if err != nil {
		return "", err
	}
	if mod == "" || mod == os.DevNull {
		return "", errors.New("run it inside the holdfast module")
	}
	return filepath.Dir(mod), nil
}

// goOutput runs the go command and returns its trimmed output.
func goOutput(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
