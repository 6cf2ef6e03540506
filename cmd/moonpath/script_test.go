package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"moonpath": main})
}

// TestScript runs the tool as a process, as its users do. Beside the commands of testscript there are:
//
//	exits CODE PROGRAM ARG...         run it, want that exit code
//	serve NAME ARG...                 start moonpath target; sets NAME_SEGMENT and NAME_ADDR (of its first buffer)
//	terminate NAME                    SIGTERM it, want exit code 0; its output goes to NAME.stdout and NAME.stderr
//	interrupt REGEXP PROGRAM ARG...   run it with a silent pipe as input, SIGINT it when standard error matches,
//	                                  want exit code 130; standard error goes to interrupted.stderr
//	field PATH REGEXP                 want a value in the JSON on stdout, such as paths.0.path
//	pattern FILE SIZE                 make a file
//	garbage NAME, nobody NAME         set NAME to a port that answers nonsense, or refuses connections
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values[serversKey{}] = make(map[string]*served)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     scriptExits,
			"serve":     scriptServe,
			"terminate": scriptTerminate,
			"interrupt": scriptInterrupt,
			"field":     scriptField,
			"pattern":   scriptPattern,
			"garbage":   scriptGarbage,
			"nobody":    scriptNobody,
		},
	})
}

// patience bounds waits for processes, on a machine that may be busy.
const patience = 30 * time.Second

func need(ts *testscript.TestScript, neg bool, args []string, least int, use string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", use)
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "exits CODE PROGRAM ARG...")
	err := ts.Exec(args[1], args[2:]...)
	if got := strconv.Itoa(exitCodeOf(err)); got != args[0] {
		ts.Fatalf("exit code %s, want %s (%v)", got, args[0], err)
	}
}

func exitCodeOf(err error) int {
	var exited *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exited):
		return exited.ExitCode()
	}
	return -1
}

// served is a target that a script started.
type served struct {
	cmd      *exec.Cmd
	out, err strings.Builder
	outEnd   chan struct{}
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "serve NAME ARG...")
	s := &served{cmd: scriptCommand(ts, "moonpath", append([]string{"target", "--json"}, args[1:]...)), outEnd: make(chan struct{})}
	s.cmd.Stderr = &s.err
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	})
	lines := bufio.NewReader(out)
	kill := s.killLate()
	first, err := lines.ReadString('\n')
	kill.Stop()
	if err != nil {
		s.cmd.Wait()
		ts.Fatalf("target did not become ready: %v\n%s", err, s.err.String())
	}
	s.out.WriteString(first)
	go func() {
		defer close(s.outEnd)
		io.Copy(&s.out, lines)
	}()
	var ready readyLine
	ts.Check(json.Unmarshal([]byte(first), &ready))
	name := args[0]
	ts.Setenv(name+"_SEGMENT", ready.Segment)
	ts.Setenv(name+"_ADDR", strconv.FormatUint(ready.Buffers[0].Addr, 10))
	scriptServers(ts)[name] = s
}

// killLate ends a process that a script waits for in vain.
func (s *served) killLate() *time.Timer {
	return time.AfterFunc(patience, func() { s.cmd.Process.Kill() })
}

// scriptServers are the targets of one script.
func scriptServers(ts *testscript.TestScript) map[string]*served {
	return ts.Value(serversKey{}).(map[string]*served)
}

type serversKey struct{}

// scriptCommand prepares a process in the environment and folder of the script.
func scriptCommand(ts *testscript.TestScript, program string, args []string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func scriptTerminate(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "terminate NAME")
	s := scriptServers(ts)[args[0]]
	if s == nil {
		ts.Fatalf("%s does not run", args[0])
	}
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	defer s.killLate().Stop()
	<-s.outEnd
	if err := s.cmd.Wait(); err != nil {
		ts.Fatalf("%s ended with %v\n%s", args[0], err, s.err.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), []byte(s.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), []byte(s.err.String()), 0o600))
}

func scriptInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "interrupt REGEXP PROGRAM ARG...")
	sign := regexp.MustCompile(args[0])
	cmd := scriptCommand(ts, args[1], args[2:])
	silent, err := cmd.StdinPipe()
	ts.Check(err)
	defer silent.Close()
	errs, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer kill.Stop()
	sent := false
	var all strings.Builder
	for scan := bufio.NewScanner(errs); scan.Scan(); {
		all.WriteString(scan.Text() + "\n")
		if !sent && sign.MatchString(scan.Text()) {
			ts.Check(cmd.Process.Signal(os.Interrupt))
			sent = true
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("interrupted.stderr"), []byte(all.String()), 0o600))
	if code := exitCodeOf(cmd.Wait()); code != exitInterrupted || !sent {
		ts.Fatalf("exit code %d, want %d; interrupted: %v\n%s", code, exitInterrupted, sent, all.String())
	}
}

func scriptField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: field PATH REGEXP")
	}
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	for _, key := range strings.Split(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			found := false
			if value, found = v[key]; !found {
				ts.Fatalf("no key %q of %s", key, args[0])
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				ts.Fatalf("no element %q of %s, which has %d", key, args[0], len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("%s: nothing to look up %q in", args[0], key)
		}
	}
	text := fmt.Sprint(value)
	if regexp.MustCompile(`\A(?:`+args[1]+`)\z`).MatchString(text) == neg {
		ts.Fatalf("%s is %s, which does not do for %q", args[0], text, args[1])
	}
}

func scriptPattern(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "pattern FILE SIZE")
	var size sizeFlag
	ts.Check(size.UnmarshalText([]byte(args[1])))
	b := make([]byte, size)
	fillPattern(b, uint64(size), 0)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
}

func scriptGarbage(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "garbage NAME")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	done := make(chan struct{})
	ts.Defer(func() {
		listener.Close()
		<-done
	})
	ts.Setenv(args[0], listener.Addr().String())
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
			c.Close()
		}
	}()
}

// scriptNobody binds a port and does not listen, so that nobody else gets it.
func scriptNobody(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "nobody NAME")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	ts.Check(err)
	ts.Defer(func() { unix.Close(fd) })
	ts.Check(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := unix.Getsockname(fd)
	ts.Check(err)
	ts.Setenv(args[0], fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port))
}
