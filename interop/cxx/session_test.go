package cxx

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

const (
	regionLength = 512 << 10
	regionSeed   = 1
)

// session records what a scenario does between a C++ target and a C++ initiator or a raw client.
type session struct {
	*testing.T
	target    *Peer
	region    transcript.Region
	recording *Recording

	initiator *Peer // nil for a raw client
	local     uint64

	calls []transcript.Call
	after []transcript.Memory
	seeds []uint64
}

func newSession(t *testing.T, settings []string, raw bool) *session {
	s := &session{T: t, target: Start(t)}
	s.region = transcript.Region{Name: "A", Addr: alloc(t, s.target, regionLength), Length: regionLength, Seed: regionSeed}
	fill(t, s.target, s.region.Addr, regionLength, regionSeed)
	s.recording = Record(t, s.target.Name)
	if !raw {
		s.initiator = Start(t, settings...)
		s.local = alloc(t, s.initiator, regionLength)
	}
	return s
}

func (s *session) at(offset int64) transcript.Ref { return transcript.Ref{Symbol: "A", Offset: offset} }

// addr is the address in this run of a place relative to the region.
func (s *session) addr(offset int64) uint64 { return s.region.Addr + uint64(offset) }

// call notes a request of the initiator's caller; an error other than a code of the engine ends the test.
func (s *session) call(c transcript.Call, err error) {
	s.Helper()
	var failed *CallFailed
	if errors.As(err, &failed) {
		c.Code = failed.Code
	} else if err != nil {
		s.Fatal(err)
	}
	s.calls = append(s.calls, c)
}

func (s *session) wantCodes(codes ...int) {
	s.Helper()
	if len(codes) != len(s.calls) {
		s.Fatalf("%d calls, want %d", len(s.calls), len(codes))
	}
	for i, c := range s.calls {
		if c.Code != codes[i] {
			s.Fatalf("call %d, %s, returned %d, want %d", i, c.Verb, c.Code, codes[i])
		}
	}
}

func (s *session) write(offset int64, seed uint64, length int) {
	s.Helper()
	s.prepare(0, seed, length)
	s.call(s.writeCall(offset, seed, length), s.initiator.Transfer(Write, s.recording.Name, s.local, s.addr(offset), uint64(length)))
}

// prepare fills the initiator's memory at that offset of its own.
func (s *session) prepare(offset, seed uint64, length int) {
	s.Helper()
	fill(s.T, s.initiator, s.local+offset, uint64(length), seed)
	s.seeds = append(s.seeds, seed)
}

func (s *session) writeCall(offset int64, seed uint64, length int) transcript.Call {
	payload := transcript.Message{transcript.Pattern(seed, 0, uint64(length))}
	if length < shortest {
		payload = transcript.Message{transcript.Hex(pattern.Bytes(seed, length))}
	}
	return transcript.Call{Verb: transcript.Write, At: s.at(offset), Payload: payload}
}

func (s *session) read(offset int64, length uint64) {
	s.Helper()
	err := s.initiator.Transfer(Read, s.recording.Name, s.local, s.addr(offset), length)
	s.call(transcript.Call{Verb: transcript.Read, At: s.at(offset), Length: length}, err)
	if err != nil {
		return
	}
	got, err := s.initiator.Checksum(s.local, length)
	if err != nil {
		s.Fatal(err)
	}
	if want, err := s.target.Checksum(s.addr(offset), length); err != nil || got != want {
		s.Fatalf("read %d bytes with checksum %s, want %s (%v)", length, got, want, err)
	}
}

// keep notes a range of the target's memory.
func (s *session) keep(offset int64, length uint64) {
	s.Helper()
	s.after = append(s.after, transcript.Memory{At: s.at(offset), Content: s.items(s.targetMemory(offset, length))})
}

func (s *session) targetMemory(offset int64, length uint64) []byte {
	s.Helper()
	b, err := s.target.ReadMem(s.addr(offset), length)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *session) items(b []byte) transcript.Message {
	return newSymbols(s.recording.target, []transcript.Region{s.region}, s.seeds, []rawEvent{{bytes: b}}).payload(b)
}

// until waits for the recorded events to satisfy a condition.
func (s *session) until(what string, done func([]rawEvent) bool) {
	s.Helper()
	deadline := time.After(recordTimeout)
	r := s.recording
	for {
		r.mu.Lock()
		ok, changed := done(r.events), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.Fatalf("not seen within %v: %s", recordTimeout, what)
		}
	}
}

// untilClosed waits until all connections to the port are closed.
func (s *session) untilClosed(port transcript.Port) {
	s.Helper()
	s.until("closed connections", func(events []rawEvent) bool {
		opened, ends := map[int]bool{}, 0
		for _, e := range events {
			switch {
			case e.kind == transcript.Opened:
				opened[e.conn] = e.port == port
			case !opened[e.conn]:
			case e.kind == transcript.Ended:
				ends++
			case e.kind == transcript.Reset:
				ends += 2
			}
		}
		want := 0
		for _, mine := range opened {
			if mine {
				want += 2
			}
		}
		return ends >= want
	})
}

func (s *session) finish() *transcript.Transcript {
	s.untilClosed(transcript.Control)
	t := s.recording.Stop([]transcript.Region{s.region}, s.seeds...)
	t.Calls, t.After = s.calls, s.after
	return t
}

// raw is a socket to a stand-in of the target.
type raw struct {
	s    *session
	conn *net.TCPConn
}

func (s *session) dial(port transcript.Port) *raw {
	s.Helper()
	addr := s.recording.Name
	if port == transcript.Data {
		addr = s.recording.Data
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(recordTimeout)); err != nil {
		s.Fatal(err)
	}
	return &raw{s, conn.(*net.TCPConn)}
}

func (r *raw) send(parts ...[]byte) {
	r.s.Helper()
	if _, err := r.conn.Write(bytes.Join(parts, nil)); err != nil {
		r.s.Fatal(err)
	}
}

func (r *raw) receive(n int) []byte {
	r.s.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(r.conn, b); err != nil {
		r.s.Fatal(err)
	}
	return b
}

// receiveAll reads up to the end of the connection, in whatever way it ends.
func (r *raw) receiveAll() []byte {
	r.s.Helper()
	b, err := io.ReadAll(r.conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		r.s.Fatal(err)
	}
	return b
}

func (r *raw) closeWrite() {
	r.s.Helper()
	if err := r.conn.CloseWrite(); err != nil {
		r.s.Fatal(err)
	}
}

func (r *raw) close() {
	r.s.Helper()
	if err := r.conn.Close(); err != nil {
		r.s.Fatal(err)
	}
}
