package cxx

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// keptTranscripts runs a test for each kept transcript that is wanted.
func keptTranscripts(t *testing.T, wanted func(*transcript.Transcript) bool, test func(*testing.T, *transcript.Transcript)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(keptFolder, "*.txt"))
	if err != nil || len(files) != len(scenarios) {
		t.Fatalf("%d transcripts kept, want %d, one per scenario (%v)", len(files), len(scenarios), err)
	}
	for _, file := range files {
		if tr := read(t, file); wanted(tr) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { test(t, tr) })
		}
	}
}

// TestKeptTranscriptsPlayedToTarget plays the initiator against a C++ target, as it is played against moonpath's.
func TestKeptTranscriptsPlayedToTarget(t *testing.T) {
	all := func(*transcript.Transcript) bool { return true }
	keptTranscripts(t, all, func(t *testing.T, tr *transcript.Transcript) {
		target := Start(t)
		b := tr.Recorded()
		for _, r := range tr.Regions {
			b.Numbers[r.Name] = alloc(t, target, r.Length)
			fill(t, target, b.Numbers[r.Name], r.Length, r.Seed)
		}
		ports, err := fetchPorts(target.Name)
		if err != nil {
			t.Fatal(err)
		}
		b.Strings[nameSymbol], b.Numbers[dataPortSymbol] = target.Name, uint64(ports.DataPort)
		addrs := map[transcript.Port]string{transcript.Control: target.Name, transcript.Data: ports.dataAddr()}
		player := transcript.Player{
			Role:     transcript.Initiator,
			Bindings: b,
			Connect:  func(p transcript.Port) (net.Conn, error) { return net.DialTimeout("tcp", addrs[p], recordTimeout) },
		}
		if err := player.Play(tr); err != nil {
			t.Fatal(err)
		}
		for _, m := range tr.After {
			want, err := m.Content.Bytes(b)
			if err != nil {
				t.Fatal(err)
			}
			addr, err := m.At.Value(b)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := target.ReadMem(addr, uint64(len(want))); err != nil || !bytes.Equal(got, want) {
				t.Errorf("memory at %v is not %v (%v)", m.At, m.Content, err)
			}
		}
	})
}

// TestKeptTranscriptsPlayedToInitiator plays the target against a C++ initiator, as it is played against moonpath's.
func TestKeptTranscriptsPlayedToInitiator(t *testing.T) {
	// A raw client has no calls that an engine could be asked for.
	called := func(tr *transcript.Transcript) bool { return len(tr.Calls) > 0 }
	keptTranscripts(t, called, func(t *testing.T, tr *transcript.Transcript) {
		initiator := Start(t, tr.Settings...)
		listeners := map[transcript.Port]net.Listener{transcript.Control: listen(t), transcript.Data: listen(t)}
		b := tr.Recorded()
		name := listeners[transcript.Control].Addr().String()
		b.Strings[nameSymbol] = name
		b.Numbers[dataPortSymbol] = uint64(listeners[transcript.Data].Addr().(*net.TCPAddr).Port)
		player := transcript.Player{
			Role:     transcript.Target,
			Bindings: b,
			Connect: func(p transcript.Port) (net.Conn, error) {
				l := listeners[p].(*net.TCPListener)
				if err := l.SetDeadline(time.Now().Add(recordTimeout)); err != nil {
					return nil, err
				}
				return l.Accept()
			},
		}
		played := make(chan error, 1)
		go func() { played <- player.Play(tr) }()
		makeCalls(t, initiator, name, tr, b)
		if err := <-played; err != nil {
			t.Error(err)
		}
	})
}

// makeCalls asks the initiator for what was asked for in the recording, and compares codes and what was read.
func makeCalls(t *testing.T, p *Peer, target string, tr *transcript.Transcript, b transcript.Bindings) {
	t.Helper()
	region := tr.Regions[0]
	remote := pattern.Bytes(region.Seed, int(region.Length)) // the target's memory as it has to be by now
	local := alloc(t, p, region.Length)
	s := &session{T: t}
	for i, c := range tr.Calls {
		addr := region.Addr + uint64(c.At.Offset)
		switch c.Verb {
		case transcript.Open:
			_, err := p.FirstBuffer(target)
			s.call(transcript.Call{Verb: c.Verb}, err)
		case transcript.Probe:
			s.call(transcript.Call{Verb: c.Verb}, p.Probe(target))
		case transcript.Write:
			payload, err := c.Payload.Bytes(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.WriteMem(local, payload); err != nil {
				t.Fatal(err)
			}
			var notify *Notify // travels with the transfer before it
			if i+1 < len(tr.Calls) && tr.Calls[i+1].Verb == transcript.Notify {
				notify = &Notify{Name: tr.Calls[i+1].Name, Text: tr.Calls[i+1].Text}
			}
			s.call(transcript.Call{Verb: c.Verb}, p.TransferNotify(Write, target, local, addr, uint64(len(payload)), notify))
			if c.At.Offset >= 0 {
				copy(remote[min(c.At.Offset, int64(len(remote))):], payload)
			}
		case transcript.Read:
			s.call(transcript.Call{Verb: c.Verb}, p.Transfer(Read, target, local, addr, c.Length))
			if c.Code != 0 {
				continue
			}
			got, err := p.ReadMem(local, c.Length)
			if err != nil || !bytes.Equal(got, remote[c.At.Offset:c.At.Offset+int64(c.Length)]) {
				t.Errorf("call %d read other bytes than recorded (%v)", i, err)
			}
		case transcript.Notify:
			s.call(transcript.Call{Verb: c.Verb}, nil)
		}
	}
	codes := make([]int, len(tr.Calls))
	for i, c := range tr.Calls {
		codes[i] = c.Code
	}
	s.wantCodes(codes...)
}
