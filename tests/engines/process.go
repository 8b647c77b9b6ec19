package engines

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// mark is an environment variable that every process of a browser inherits, in any group or session.
const mark = "HOLDFAST_ENGINE"

// processes are the processes of one browser: its own process, helpers and their children, with one folder on disk.
type processes struct {
	home     string // profile, temporary files, configuration; removed at the end
	commands []*exec.Cmd
}

func newProcesses() (*processes, error) {
	home, err := os.MkdirTemp("", "hf-") // short: a socket in it has at most 108 bytes
	if err != nil {
		return nil, err
	}
	return &processes{home: home}, nil
}

// start runs a program in its own process group. The program also ends when this process does.
func (p *processes) start(output io.Writer, environment []string, extra *os.File, name string, arguments ...string) error {
	cmd := exec.Command(name, arguments...)
	cmd.Dir = p.home
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // a grandchild may still have the output open
	if extra != nil {
		cmd.ExtraFiles = []*os.File{extra} // descriptor 3
	}
	cmd.Env = append(os.Environ(), "HOME="+p.home, "TMPDIR="+p.home, "XDG_RUNTIME_DIR="+p.home, "XDG_CACHE_HOME="+p.home,
		"XDG_CONFIG_HOME="+p.home, "XDG_DATA_HOME="+p.home, mark+"="+p.home)
	cmd.Env = append(cmd.Env, environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.commands = append(p.commands, cmd)
	return nil
}

// quit kills all processes, inside and outside the groups, and removes their files.
func (p *processes) quit() error {
	if err := p.stop(syscall.SIGKILL); err != nil {
		return err
	}
	return os.RemoveAll(p.home)
}

// stop ends all processes. SIGKILL goes to all of them, inside and outside the groups. Another signal goes to those
// that were started here, which end the others.
func (p *processes) stop(signal syscall.Signal) error {
	limit := browser.Limit
	for _, cmd := range p.commands {
		if signal == syscall.SIGKILL {
			_ = syscall.Kill(-cmd.Process.Pid, signal)
		} else {
			limit = 2 * browser.Limit
			_ = cmd.Process.Signal(signal)
		}
	}
	deadline := time.Now().Add(limit)
	left := p.alive()
	for ; len(left) > 0 && time.Now().Before(deadline); left = p.alive() {
		if signal == syscall.SIGKILL {
			for _, pid := range left {
				_ = syscall.Kill(pid, signal)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	if len(left) > 0 {
		return fmt.Errorf("processes are left after %v: %v", signal, left)
	}
	for _, cmd := range p.commands {
		_ = cmd.Wait() // an error, because it was killed
	}
	p.commands = nil
	return nil
}

// alive returns the running processes with the mark.
func (p *processes) alive() (found []int) {
	wanted := append(append([]byte{0}, mark+"="+p.home...), 0)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file) // empty for a process that has ended without being waited for
		if err != nil || !bytes.Contains(append(append([]byte{0}, environment...), 0), wanted) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// find returns the path of the first existing program, or an error that says what to install.
func find(what, debian string, names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", missing(what, debian)
}

func missing(what, debian string) error {
	return fmt.Errorf("%s is missing: install the package %s (apt-get install %s)", what, debian, debian)
}
