package netlab

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

var holdLab = flag.Bool("hold", false, "make a lab, print the processes of its hosts, and wait to be killed")

func TestMain(m *testing.M) {
	flag.Parse()
	if *holdLab {
		l, err := New(Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.Near.pid, l.Far.pid)
		select {}
	}
	goleak.VerifyTestMain(m)
}

func newLab(t *testing.T, o Options) *Lab {
	t.Helper()
	l, err := New(o)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// on runs f on a thread in the namespace of h.
func on[T any](t *testing.T, h *Host, f func() (T, error)) T {
	t.Helper()
	type result struct {
		value T
		err   error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked
		ns, err := os.Open(h.namespace())
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		var r result
		if r.err = err; err == nil {
			r.value, r.err = f()
		}
		got <- r
	}()
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.value
}

// pair is a UDP socket on each host.
func pair(t *testing.T, l *Lab) (near, far net.PacketConn) {
	t.Helper()
	open := func(h *Host) net.PacketConn {
		c := on(t, h, func() (net.PacketConn, error) { return net.ListenPacket("udp4", h.Address+":0") })
		t.Cleanup(func() { c.Close() })
		return c
	}
	return open(l.Near), open(l.Far)
}

// exchange sends numbered packets and returns those that come within limit, each with the time that it took.
func exchange(t *testing.T, near, far net.PacketConn, n, size int, limit time.Duration) (numbers []int, took []time.Duration) {
	t.Helper()
	sent := make([]time.Time, n)
	packet := make([]byte, size)
	for i := range n {
		binary.LittleEndian.PutUint32(packet, uint32(i))
		sent[i] = time.Now()
		if _, err := near.WriteTo(packet, far.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	far.SetReadDeadline(time.Now().Add(limit))
	buffer := make([]byte, size)
	for len(numbers) < n {
		if _, _, err := far.ReadFrom(buffer); errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		i := int(binary.LittleEndian.Uint32(buffer))
		numbers, took = append(numbers, i), append(took, time.Since(sent[i]))
	}
	return numbers, took
}

func TestDelayIsAddedOnce(t *testing.T) {
	const delay = 20 * time.Millisecond
	near, far := pair(t, newLab(t, Options{Path: Path{Delay: delay}}))
	numbers, took := exchange(t, near, far, 20, 1000, 5*time.Second)
	if len(numbers) != 20 {
		t.Fatalf("%d of 20 packets came", len(numbers))
	}
	least := took[0]
	for i, d := range took {
		if numbers[i] != i {
			t.Errorf("packet %d came as number %d", numbers[i], i)
		}
		least = min(least, d)
	}
	if least < delay || least >= 2*delay {
		t.Errorf("the fastest packet took %v, want %v and less than twice as much", least, delay)
	}
}

func TestDarkLineSwallowsBothWaysAndComesBack(t *testing.T) {
	l := newLab(t, Options{})
	near, far := pair(t, l)
	if err := l.Set(Path{Dark: true}); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]net.PacketConn{{near, far}, {far, near}} {
		if numbers, _ := exchange(t, way[0], way[1], 5, 100, 50*time.Millisecond); len(numbers) != 0 {
			t.Errorf("%d packets came through a dark line", len(numbers))
		}
	}
	if err := l.Set(Path{}); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]net.PacketConn{{near, far}, {far, near}} {
		if numbers, _ := exchange(t, way[0], way[1], 5, 100, 5*time.Second); len(numbers) != 5 {
			t.Errorf("%d of 5 packets came after the line had come back", len(numbers))
		}
	}
}

func TestRateIsKept(t *testing.T) {
	// 20 Mbit/s carry 100 packets of 1000 and 28 bytes in 41 ms, more than the line holds back.
	l := newLab(t, Options{Path: Path{Rate: 20e6}})
	near, far := pair(t, l)
	begin := time.Now()
	numbers, _ := exchange(t, near, far, 50, 1000, 5*time.Second)
	if took := time.Since(begin); len(numbers) != 50 || took < 20*time.Millisecond {
		t.Errorf("%d of 50 packets came within %v, want all in 20.56 ms or more", len(numbers), took)
	}
	if numbers, _ := exchange(t, near, far, 200, 1000, 200*time.Millisecond); len(numbers) > 120 {
		t.Errorf("%d of 200 packets came, and the line holds 61 of them", len(numbers))
	}
}

func TestScheduleLosesTheShareItShould(t *testing.T) {
	var path atomic.Pointer[Path]
	path.Store(&Path{Loss: 0.01})
	d := &direction{path: &path, random: rand.New(rand.NewPCG(1, 1))}
	lost := 0
	for range 100_000 {
		if _, arrives := d.schedule(time.Now(), 1000); !arrives {
			lost++
		}
	}
	if lost < 800 || lost > 1200 {
		t.Errorf("%d of 100000 packets lost at 1 %%", lost)
	}
}

func TestTCPOverTheLine(t *testing.T) {
	l := newLab(t, Options{Path: Path{Delay: time.Millisecond, Loss: 0.01}})
	listener := on(t, l.Far, func() (net.Listener, error) { return net.Listen("tcp4", l.Far.Address+":0") })
	defer listener.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	c := on(t, l.Near, func() (net.Conn, error) { return net.Dial("tcp4", listener.Addr().String()) })
	const length = 4 << 20
	if _, err := c.Write(make([]byte, length)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := <-got; n != length {
		t.Errorf("%d bytes came, want %d", n, length)
	}
	if _, lost := l.Carried(); lost == 0 {
		t.Error("no packet was lost")
	}
}

func TestNothingIsLeft(t *testing.T) {
	l := newLab(t, Options{})
	namespaces := []string{l.Near.namespace(), l.Far.namespace()}
	if out, err := l.Far.Command(t.Context(), "ip", "-o", "link", "show", device).CombinedOutput(); err != nil || !strings.Contains(string(out), "UP") {
		t.Fatalf("the device on the far host: %v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	straggler := l.Near.Command(ctx, "cat")
	stdin, err := straggler.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := straggler.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := straggler.Wait(); err == nil {
		t.Error("a command ended well although it was canceled")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.devices, l.Near, l.Far = nil, nil, nil // so that the cleanup has nothing to close again
	for _, ns := range namespaces {
		if _, err := os.Stat(ns); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", ns, err)
		}
	}
	left, err := filepath.Glob("/sys/class/net/" + device)
	if err != nil || len(left) > 0 {
		t.Errorf("devices in our own namespace: %v, %v", left, err)
	}
}

func TestNothingIsLeftAfterAKill(t *testing.T) {
	newLab(t, Options{}) // or else the test is skipped
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-hold")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	if _, err := fmt.Fscan(stdout, &pids[0], &pids[1]); err != nil {
		t.Errorf("the lab: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		namespace := (&Host{pid: pid}).namespace()
		tick := time.NewTicker(time.Millisecond)
		deadline := time.After(5 * time.Second)
		for gone := false; !gone; {
			// What is left of a process that nobody has waited for has no namespace any more.
			_, err := os.Readlink(namespace)
			gone = err != nil
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%s is still there", namespace)
			}
		}
		tick.Stop()
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{
		{Path: Path{Delay: -1}}, {Path: Path{Delay: time.Minute}}, {Path: Path{Loss: 1.5}}, {Path: Path{Rate: -1}}, {MTU: 100}, {MTU: 1 << 20},
	} {
		if l, err := New(o); err == nil {
			l.Close()
			t.Errorf("a lab with %+v", o)
		} else if errors.Is(err, ErrUnavailable) {
			t.Errorf("%+v: %v, want what is wrong with it", o, err)
		}
	}
}
