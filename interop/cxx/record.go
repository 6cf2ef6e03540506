package cxx

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/interop/transcript"
)

// recordTimeout bounds what a recording waits for.
const recordTimeout = 20 * time.Second

// Recording is a proxy between initiators and one target that writes down everything that passes. The target's control
// port and data port each have a stand-in; in the descriptors that pass, the target's name and data port are replaced by
// those of the stand-ins, so that what an initiator does next passes here, too.
type Recording struct {
	// Name is what an initiator opens in place of the target's own name.
	Name string
	// Data is the host and port that stands for the target's data port.
	Data string

	target   targetPorts
	dataPort int
	serving  sync.WaitGroup

	mu      sync.Mutex
	events  []rawEvent
	opened  int
	closers []io.Closer
	stopped bool
	changed chan struct{} // closed and replaced at each event
}

// targetPorts is what a recording has to know of the target's descriptor.
type targetPorts struct {
	Name     string `json:"name"`
	DataHost string `json:"tcp_data_host"`
	DataPort int    `json:"tcp_data_port"`
}

func (p targetPorts) dataAddr() string { return net.JoinHostPort(p.DataHost, strconv.Itoa(p.DataPort)) }

// rawEvent is an event whose bytes are not yet items. The bytes of one direction between two words of the other are one event.
type rawEvent struct {
	conn  int
	kind  transcript.Kind
	port  transcript.Port
	from  transcript.Role
	bytes []byte
}

// Record starts a recording of the conversations with the target of that name. It ends with the test if Stop does not
// end it before.
func Record(t testing.TB, target string) *Recording {
	t.Helper()
	r := &Recording{changed: make(chan struct{})}
	var err error
	if r.target, err = fetchPorts(target); err != nil {
		t.Fatalf("descriptor of %s: %v", target, err)
	}
	t.Cleanup(r.close)
	control, data := r.listen(t), r.listen(t)
	r.Name, r.Data = control.Addr().String(), data.Addr().String()
	r.dataPort = data.Addr().(*net.TCPAddr).Port
	r.serving.Go(func() { r.serve(control, transcript.Control, target) })
	r.serving.Go(func() { r.serve(data, transcript.Data, r.target.dataAddr()) })
	return r
}

func (r *Recording) listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.closers = append(r.closers, l)
	return l
}

// fetchPorts asks the target itself, before anything is recorded.
func fetchPorts(target string) (targetPorts, error) {
	var ports targetPorts
	conn, err := net.DialTimeout("tcp", target, recordTimeout)
	if err != nil {
		return ports, err
	}
	defer func() { _ = conn.Close() }()
	// A deadline that cannot be set shows in the read.
	_ = conn.SetDeadline(time.Now().Add(recordTimeout))
	if _, err := conn.Write([]byte("\x04\x00\x00\x00\x00\x00\x00\x00\x01{}\n")); err != nil {
		return ports, err
	}
	frame, err := io.ReadAll(conn)
	if err != nil {
		return ports, err
	}
	if len(frame) < 9 {
		return ports, fmt.Errorf("reply of %d bytes", len(frame))
	}
	return ports, json.Unmarshal(frame[9:], &ports)
}

func (r *Recording) serve(l net.Listener, port transcript.Port, target string) {
	for {
		initiator, err := l.Accept()
		if err != nil {
			return // closed at the end of the recording
		}
		r.serving.Go(func() { r.serveConn(initiator.(*net.TCPConn), port, target) })
	}
}

func (r *Recording) serveConn(initiator *net.TCPConn, port transcript.Port, target string) {
	id, ok := r.open(port, initiator)
	if !ok {
		return
	}
	conn, err := net.DialTimeout("tcp", target, recordTimeout)
	if err != nil {
		_ = initiator.Close() // the initiator meets a closed connection, as it would without the proxy
		return
	}
	toTarget := conn.(*net.TCPConn)
	r.closeLater(toTarget)
	var both sync.WaitGroup
	both.Go(func() { r.forward(id, transcript.Initiator, initiator, toTarget, nil) })
	both.Go(func() {
		var patch func([]byte) []byte
		if port == transcript.Control {
			patch = r.withStandIns
		}
		r.forward(id, transcript.Target, toTarget, initiator, patch)
	})
	both.Wait()
	_ = initiator.Close()
	_ = toTarget.Close()
}

// open counts a connection and makes sure that it is closed with the recording.
func (r *Recording) open(port transcript.Port, c io.Closer) (id int, ok bool) {
	r.mu.Lock()
	r.opened++
	id = r.opened
	r.mu.Unlock()
	return id, r.note(rawEvent{conn: id, kind: transcript.Opened, port: port}) && r.closeLater(c)
}

func (r *Recording) closeLater(c io.Closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		_ = c.Close()
		return false
	}
	r.closers = append(r.closers, c)
	return true
}

// forward copies one direction of a connection and notes each piece before it goes on. With a patch the direction is
// collected up to its end first: a control reply is one frame, behind which the target closes.
func (r *Recording) forward(id int, from transcript.Role, src, dst *net.TCPConn, patch func([]byte) []byte) {
	piece := make([]byte, 256<<10)
	var collected []byte
	for {
		n, err := src.Read(piece)
		if n > 0 {
			r.note(rawEvent{conn: id, kind: transcript.Sent, from: from, bytes: append([]byte(nil), piece[:n]...)})
			if patch != nil {
				collected = append(collected, piece[:n]...)
			} else {
				_, _ = dst.Write(piece[:n]) // a receiver that is gone shows in the other direction
			}
		}
		if err == nil {
			continue
		}
		if len(collected) > 0 {
			_, _ = dst.Write(patch(collected))
		}
		if errors.Is(err, syscall.ECONNRESET) {
			r.note(rawEvent{conn: id, kind: transcript.Reset, from: from})
			_ = dst.SetLinger(0)
			_ = dst.Close()
		} else if errors.Is(err, io.EOF) {
			r.note(rawEvent{conn: id, kind: transcript.Ended, from: from})
			_ = dst.CloseWrite()
		}
		return
	}
}

// withStandIns returns a control frame with the recording's ports where the target's are.
func (r *Recording) withStandIns(frame []byte) []byte {
	if len(frame) < 8 || binary.LittleEndian.Uint64(frame) != uint64(len(frame)-8) {
		return frame
	}
	field := func(port int) []byte { return fmt.Appendf(nil, `"tcp_data_port":%d,`, port) }
	patched := bytes.ReplaceAll(frame[8:], field(r.target.DataPort), field(r.dataPort))
	patched = bytes.ReplaceAll(patched, []byte(`"`+r.target.Name+`"`), []byte(`"`+r.Name+`"`))
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(patched))), patched...)
}

// note adds an event, or does nothing once the recording has stopped: what happens then is its own doing.
func (r *Recording) note(e rawEvent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	if last := r.lastOf(e.conn); e.kind == transcript.Sent && last.kind == transcript.Sent && last.from == e.from {
		last.bytes = append(last.bytes, e.bytes...)
	} else {
		r.events = append(r.events, e)
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return true
}

func (r *Recording) lastOf(conn int) *rawEvent {
	for i := len(r.events) - 1; i >= 0; i-- {
		if r.events[i].conn == conn {
			return &r.events[i]
		}
	}
	return &rawEvent{kind: transcript.Opened}
}

// close ends everything that passes and waits for the goroutines.
func (r *Recording) close() {
	r.mu.Lock()
	r.stopped = true
	closers := r.closers
	r.closers = nil
	r.mu.Unlock()
	for _, c := range closers {
		_ = c.Close()
	}
	r.serving.Wait()
}

// Stop ends the recording and returns it. The regions are the target's; seeds are those of the payload that was written.
// Connections that are open at this moment have no end in the transcript.
func (r *Recording) Stop(regions []transcript.Region, seeds ...uint64) *transcript.Transcript {
	r.close()
	s := newSymbols(r.target, regions, seeds, r.events)
	return &transcript.Transcript{
		Strings: []transcript.String{{Name: nameSymbol, Value: r.target.Name}},
		Numbers: []transcript.Number{{Name: dataPortSymbol, Value: uint64(r.target.DataPort)}},
		Regions: regions,
		Events:  s.events(r.events),
	}
}
