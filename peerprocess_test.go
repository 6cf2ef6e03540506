package moonpath_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
)

// peerProcess is an engine in a process of its own, which can be killed and frozen. Its memory is a file that is mapped
// here, too: what is in it is seen without any transfer.
type peerProcess struct {
	peerIdentity
	memory []byte
	file   *os.File

	cmd   *exec.Cmd
	stdin io.WriteCloser
	over  bool
}

// peerIdentity is what a peer process is known by; all of its lives have the same, but for the incarnation.
type peerIdentity struct {
	Name          string
	Control, Data int
	Addr, Size    uint64
}

// peerAddr is where every peer process has its memory, so that one that is started again has it at the same place.
const peerAddr = 0x5a0000000000

// asPeer is the first argument of this program when it is to be a peer, and the identity is the second.
const asPeer = "be-a-peer"

// A peer process is the test program itself. It must not run tests, nor parse their flags: it never leaves init.
func init() {
	if len(os.Args) != 3 || os.Args[1] != asPeer {
		return
	}
	if err := bePeer(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "peer process:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bePeer says who it is and serves until its standard input ends, as it does with the test.
func bePeer(identity string) error {
	var p peerIdentity
	if err := json.Unmarshal([]byte(identity), &p); err != nil {
		return err
	}
	e, err := moonpath.Open(context.Background(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}, ControlPort: p.Control, DataPort: p.Data})
	if err != nil {
		return err
	}
	defer e.Close()
	const file = 3 // the first that exec.Cmd hands over
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, peerAddr, uintptr(p.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE, file, 0); errno != 0 {
		return errno
	}
	if err := e.RegisterLocalMemory(peerAddr, p.Size, "*", true); err != nil {
		return err
	}
	d, err := e.Segment(moonpath.LocalSegment)
	if err != nil {
		return err
	}
	p.Name, p.Control, p.Data, p.Addr = e.Name(), e.GetRPCPort(), int(d.TCP.Port), peerAddr
	if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startPeer starts a process that ends with the test.
func startPeer(t testing.TB, size uint64) *peerProcess {
	t.Helper()
	fd, err := unix.MemfdCreate("peer", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "peer memory")
	t.Cleanup(func() { file.Close() })
	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(memory) })
	return runPeer(t, &peerProcess{peerIdentity: peerIdentity{Size: size}, memory: memory, file: file})
}

// restart starts another process with the name, ports, memory and addresses of one that has ended.
func (p *peerProcess) restart(t testing.TB) *peerProcess {
	t.Helper()
	return runPeer(t, &peerProcess{peerIdentity: p.peerIdentity, memory: p.memory, file: p.file})
}

func runPeer(t testing.TB, p *peerProcess) *peerProcess {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	identity, err := json.Marshal(p.peerIdentity)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(program, asPeer, string(identity))
	p.cmd.Stderr = t.Output()
	p.cmd.ExtraFiles = []*os.File{p.file}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	limit := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
	defer limit.Stop()
	if err := json.NewDecoder(stdout).Decode(&p.peerIdentity); err != nil {
		t.Fatalf("the peer process does not say who it is: %v", err)
	}
	return p
}

// kill ends the process as a crash does; its kernel ends the connections.
func (p *peerProcess) kill() {
	if !p.over {
		p.over = true
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

// freeze stops the process; its kernel goes on to accept connections and bytes.
func (p *peerProcess) freeze(t testing.TB) {
	t.Helper()
	p.signal(t, unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil { // all of its threads
		t.Fatal(err)
	}
}

func (p *peerProcess) thaw(t testing.TB) { p.signal(t, unix.SIGCONT) }

func (p *peerProcess) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
