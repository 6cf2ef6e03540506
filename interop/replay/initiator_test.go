package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
	"github.com/moonpath-io/moonpath/xfer"
)

// otherwise are the transcripts of an engine's calls at which moonpath does something else by design. The tests of
// package interop have them with a living engine.
var otherwise = map[string]string{
	"no-pool":           "moonpath always keeps its connections",
	"rejected-read-v1":  "moonpath asks three times before it takes a close for a refusal, and for the descriptor meanwhile",
	"rejected-read-v2":  "moonpath cuts a request at the border of what is published",
	"rejected-write-v1": "moonpath finds out that the target refused, where the recorded engine reports success",
}

func TestMoonpathAsInitiator(t *testing.T) {
	kept := transcripts(t)
	for name := range otherwise {
		if kept[name] == nil {
			t.Errorf("%s is no transcript", name)
		}
	}
	for name, tr := range kept {
		if len(tr.Calls) == 0 || otherwise[name] != "" {
			continue // those without calls are of raw clients, which no engine could be asked to do
		}
		t.Run(name, func(t *testing.T) {
			stand := newStand(t)
			b := tr.Recorded()
			b.Strings[nameSymbol], b.Numbers[dataPortSymbol] = stand.name, stand.dataPort
			conversation := tr
			if name == "write-v1" {
				conversation = confirmed(tr)
			}
			player := transcript.Player{Role: transcript.Target, Bindings: b, Frame: anyRequest, Connect: stand.connect}
			played := make(chan error, 1)
			go func() { played <- player.Play(conversation) }()
			makeCalls(t, openEngine(t, tr.Settings), stand.name, tr, b)
			if err := <-played; err != nil {
				t.Error(err)
			}
		})
	}
}

// confirmed is the conversation with a read of its last byte behind every write of version 1.
func confirmed(tr *transcript.Transcript) *transcript.Transcript {
	b := tr.Recorded()
	again := *tr
	again.Events = nil
	for _, e := range tr.Events {
		again.Events = append(again.Events, e)
		if e.Kind != transcript.Sent || e.From != transcript.Initiator {
			continue
		}
		request, err := e.Message.Bytes(b)
		if err != nil || len(request) <= 24 || request[16] != 1 {
			continue // no write of version 1
		}
		n, addr := binary.LittleEndian.Uint64(request), binary.LittleEndian.Uint64(request[8:])
		region := tr.Regions[0]
		last := transcript.Ref{Symbol: region.Name, Offset: int64(addr + n - 1 - region.Addr)}
		ask, answer := e, e
		ask.Message = transcript.Message{transcript.Hex([]byte{1, 0, 0, 0, 0, 0, 0, 0}), transcript.U64(last), transcript.Hex(make([]byte, 8))}
		answer.From, answer.Message = transcript.Target, transcript.Message{transcript.Hex(request[len(request)-1:])}
		again.Events = append(again.Events, ask, answer)
	}
	return &again
}

// makeCalls asks the engine for what was asked for in the recording, and compares results and what was read.
func makeCalls(t *testing.T, e *moonpath.Engine, target string, tr *transcript.Transcript, b transcript.Bindings) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	region := tr.Regions[0]
	remote := pattern.Bytes(region.Seed, int(region.Length)) // the target's memory as it has to be by now
	local := alloc(t, e, region.Length)
	for i, c := range tr.Calls {
		addr := region.Addr + uint64(c.At.Offset)
		var err error
		switch c.Verb {
		case transcript.Open:
			_, err = e.OpenSegment(target)
		case transcript.Probe:
			err = e.Probe(ctx, target)
		case transcript.Notify:
			err = e.SendNotify(open(t, e, target), moonpath.Notify{Name: c.Name, Text: c.Text})
		case transcript.Write:
			var payload []byte
			if payload, err = c.Payload.Bytes(b); err != nil {
				t.Fatal(err)
			}
			copy(local.Bytes(), payload)
			err = e.Write(ctx, open(t, e, target), local.At(0), addr, uint64(len(payload)))
			if err == nil {
				copy(remote[c.At.Offset:], payload)
			}
		case transcript.Read:
			err = e.Read(ctx, open(t, e, target), local.At(0), addr, c.Length)
			if err == nil && !bytes.Equal(local.Bytes()[:c.Length], remote[c.At.Offset:][:c.Length]) {
				t.Errorf("call %d read other bytes than recorded", i)
			}
		}
		if c.Code == 0 && err != nil || c.Code != 0 && !errors.Is(err, xfer.Refused) {
			t.Errorf("call %d, %s: %v; the recorded engine returned %d", i, c.Verb, err, c.Code)
		}
	}
}

func open(t *testing.T, e *moonpath.Engine, name string) moonpath.SegmentID {
	t.Helper()
	id, err := e.OpenSegment(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// stand is the two ports of a target that is played.
type stand struct {
	name     string
	dataPort uint64
	ready    map[transcript.Port]chan net.Conn
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{ready: map[transcript.Port]chan net.Conn{}}
	s.name = s.listen(t, transcript.Control).String()
	s.dataPort = uint64(s.listen(t, transcript.Data).Port)
	return s
}

// listen offers connections to the player once something has come on them: moonpath may open one and need another first.
func (s *stand) listen(t *testing.T, port transcript.Port) *net.TCPAddr {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan net.Conn, 64)
	s.ready[port] = ready
	var running sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	running.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			running.Go(func() {
				if speaks(c) {
					ready <- c
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			_ = c.Close()
		}
	})
	return l.Addr().(*net.TCPAddr)
}

// speaks waits until a byte can be read from c, and leaves it there.
func speaks(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	waitErr := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
		return !errors.Is(err, unix.EAGAIN)
	})
	return waitErr == nil && err == nil && n > 0
}

// connect is the player's: it waits for as long as a step may take.
func (s *stand) connect(p transcript.Port) (net.Conn, error) {
	select {
	case c := <-s.ready[p]:
		return c, nil
	case <-time.After(10 * time.Second):
		return nil, errors.New("nothing came within 10 s")
	}
}
