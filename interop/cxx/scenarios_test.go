package cxx

import (
	"bytes"
	"encoding/binary"

	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// scenario is one kept transcript: how to record it, and what must be true of it.
type scenario struct {
	file     string
	about    string
	notes    []string
	settings []string
	raw      bool // a raw socket client is the initiator
	run      func(*session)
}

// oneLane makes the order of the requests on the wire that of their submission.
const oneLane = "MC_TCP_LANES_PER_PEER=1"

const noPool = "MC_TCP_ENABLE_CONNECTION_POOL=0"

var scenarios = []scenario{
	{
		file: "metadata", about: "the target's descriptor is fetched",
		run: func(s *session) {
			addr, err := s.initiator.FirstBuffer(s.recording.Name)
			s.call(transcript.Call{Verb: transcript.Open}, err)
			if addr != s.region.Addr {
				s.Fatalf("first buffer %#x, want %#x", addr, s.region.Addr)
			}
		},
	},
	{
		file: "probe", about: "the target is asked whether it is alive",
		run: func(s *session) {
			s.call(transcript.Call{Verb: transcript.Probe}, s.initiator.Probe(s.recording.Name))
			s.wantCodes(0)
		},
	},
	{
		file: "notify", about: "a message for the target after a write",
		notes: []string{"text outside ASCII is sent escaped"},
		run: func(s *session) {
			s.prepare(0, 2, 5)
			n := &Notify{Name: "nm", Text: "ünï"}
			err := s.initiator.TransferNotify(Write, s.recording.Name, s.local, s.addr(16), 5, n)
			s.call(s.writeCall(16, 2, 5), err)
			s.call(transcript.Call{Verb: transcript.Notify, Name: n.Name, Text: n.Text}, nil)
			if got, err := s.target.Notifies(); err != nil || len(got) != 1 || got[0] != *n {
				s.Fatalf("notifies %v, %v, want %v", got, err, *n)
			}
			s.wantCodes(0, 0)
			s.keep(16, 5)
		},
	},
	{
		file: "write-v2-small", about: "write of 5 bytes, protocol v2",
		run: func(s *session) {
			s.write(17, 2, 5)
			s.wantCodes(0)
			s.keep(16, 7)
		},
	},
	{
		file: "read-v2-small", about: "read of 5 bytes, protocol v2",
		run: func(s *session) {
			s.read(17, 5)
			s.wantCodes(0)
		},
	},
	{
		file: "write-v2-300000", about: "write of 300,000 bytes, protocol v2",
		run: func(s *session) {
			s.write(4099, 2, 300000)
			s.wantCodes(0)
			s.keep(4098, 300002)
		},
	},
	{
		file: "read-v2-300000", about: "read of 300,000 bytes, protocol v2",
		run: func(s *session) {
			s.read(4099, 300000)
			s.wantCodes(0)
		},
	},
	{
		file: "pool-reuse", about: "five requests one after another on one pooled connection, protocol v2",
		settings: []string{oneLane},
		run: func(s *session) {
			s.write(0, 2, 1)
			s.read(0, 100)
			s.write(1000, 3, 4096)
			s.read(999, 4098)
			s.write(regionLength-8, 4, 8)
			s.wantCodes(0, 0, 0, 0, 0)
			s.keep(0, 2)
			s.keep(999, 4098)
			s.keep(regionLength-9, 9)
		},
	},
	{
		file: "pool-batch", about: "a batch of four writes on one pooled connection, protocol v2",
		notes:    []string{"the initiator submitted the four as one batch; it never has two requests on a connection at a time"},
		settings: []string{oneLane},
		run: func(s *session) {
			b := Batch{Op: Write, Target: s.recording.Name}
			var calls []transcript.Call
			for i := range uint64(4) {
				s.prepare(i*1000, 2+i, 100)
				b.Locals = append(b.Locals, s.local+i*1000)
				b.Remotes = append(b.Remotes, s.addr(int64(i)*4096))
				b.Lengths = append(b.Lengths, 100)
				calls = append(calls, s.writeCall(int64(i)*4096, 2+i, 100))
			}
			err := s.initiator.BatchTransfer(b)
			for _, c := range calls {
				s.call(c, err)
			}
			s.wantCodes(0, 0, 0, 0)
			for i := range int64(4) {
				s.keep(i*4096, 101)
			}
		},
	},
	{
		file: "no-pool", about: "a write and a read without a pool: a connection each, protocol v2",
		settings: []string{noPool},
		run: func(s *session) {
			s.write(16, 2, 5)
			s.read(15, 100)
			s.wantCodes(0, 0)
			s.untilClosed(transcript.Data)
			s.keep(15, 100)
		},
	},
	{
		file: "write-v1", about: "writes and a read, protocol v1, one pooled connection",
		notes:    []string{"nothing acknowledges a write; the read behind it proves that it was executed"},
		settings: []string{"MC_TCP_PROTO=1", oneLane},
		run: func(s *session) {
			s.write(16, 2, 5)
			s.write(4099, 3, 70000)
			s.read(4098, 70002)
			s.wantCodes(0, 0, 0)
			s.keep(16, 5)
			s.keep(4098, 70002)
		},
	},
	{
		file: "read-v1", about: "read of 300,000 bytes, protocol v1",
		settings: []string{"MC_TCP_PROTO=1"},
		run: func(s *session) {
			s.read(4099, 300000)
			s.wantCodes(0)
		},
	},
	{
		file: "rejected-write-v2", about: "write to an address just behind the region, protocol v2",
		settings: []string{noPool},
		run: func(s *session) {
			s.write(regionLength, 2, 5)
			s.wantCodes(-1)
			s.untilClosed(transcript.Data)
			s.keep(0, regionLength)
		},
	},
	{
		file: "rejected-read-v2", about: "read across the end of the region, protocol v2",
		settings: []string{noPool},
		run: func(s *session) {
			s.read(regionLength-1, 2)
			s.wantCodes(-1)
			s.untilClosed(transcript.Data)
		},
	},
	{
		file: "rejected-write-v1", about: "write to an address just before the region, protocol v1",
		notes:    []string{"the initiator reports success, because nothing tells it otherwise: known, and not to be imitated"},
		settings: []string{"MC_TCP_PROTO=1", noPool},
		run: func(s *session) {
			s.write(-1, 2, 5)
			s.wantCodes(0)
			s.untilClosed(transcript.Data)
			s.keep(0, regionLength)
		},
	},
	{
		file: "rejected-read-v1", about: "read before the region, protocol v1",
		settings: []string{"MC_TCP_PROTO=1", noPool},
		run: func(s *session) {
			s.read(-1, 5)
			s.wantCodes(-1)
			s.untilClosed(transcript.Data)
		},
	},
	{
		file: "raw-connection", about: "Connection messages, an empty one and one of an RDMA engine", raw: true,
		run: func(s *session) {
			s.exchange("\x00{}\n")
			s.exchange("\x00" + `{"local_gid":"","local_lid":0,"local_nic_path":"10.0.0.1:15001@mlx5_0","payload":"",` +
				`"peer_nic_path":"10.0.0.2:15001@mlx5_0","qp_num":[17,18],"ready_ack":true,"reply_msg":""}` + "\n")
		},
	},
	{
		file: "raw-old-protocol", about: "a frame without a type byte, and its reply without one", raw: true,
		run: func(s *session) { s.exchange("{}") },
	},
	{
		file: "raw-metadata-odd-bodies", about: "Metadata requests whose body is not an object", raw: true,
		run: func(s *session) {
			for _, body := range []string{"{}", "null", "[1]", "0"} {
				s.exchange("\x01" + body)
			}
		},
	},
	{
		file: "raw-probe-odd-bodies", about: "Probe requests whose body is not an object", raw: true,
		run: func(s *session) {
			for _, body := range []string{"{}", "null", "[1]", "0"} {
				s.exchange("\x03" + body)
			}
		},
	},
	{
		file: "raw-notify-odd-fields", about: "Notify requests without fields or with a number", raw: true,
		run: func(s *session) {
			s.exchange("\x02{}")
			s.exchange("\x02" + `{"name":"n","notify_msg":""}`)
			s.exchange("\x02" + `{"name":7,"notify_msg":"m","extra":[1]}`)
			got, err := s.target.Notifies()
			if want := []Notify{{}, {Name: "n"}, {Name: "7", Text: "m"}}; err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
				s.Fatalf("notifies %v, %v, want %v", got, err, want)
			}
		},
	},
	{
		file: "raw-refused-frames", about: "frames that are closed on without a reply", raw: true,
		notes: []string{
			"in this order: no bytes announced, one more than the limit announced, unknown type 4, type 0xff, no JSON, text of HTTP",
		},
		run: func(s *session) {
			for _, frame := range []string{
				"\x00\x00\x00\x00\x00\x00\x00\x00",
				"\x01\x00\x10\x00\x00\x00\x00\x00",
				"\x03\x00\x00\x00\x00\x00\x00\x00\x04{}",
				"\x03\x00\x00\x00\x00\x00\x00\x00\xff{}",
				"\x03\x00\x00\x00\x00\x00\x00\x00\x01xx",
				"GET / HT",
			} {
				s.refused(frame)
			}
		},
	},
	{
		file: "raw-pipelined", about: "three v2 requests sent before anything is received", raw: true,
		run: func(s *session) {
			r := s.dial(transcript.Data)
			r.send(s.header(2, 0, 0x81), []byte("ab"), s.header(2, 2, 0x81), []byte("cd"), s.header(4, 0, 0x80))
			if got := r.receive(28); string(got[24:]) != "abcd" {
				s.Fatalf("got % x", got)
			}
			s.keep(0, 5)
		},
	},
	{
		file: "raw-pipelined-bulk", about: "sixteen v2 requests of 1000 bytes, writes and reads by turns, sent before anything is received", raw: true,
		run: func(s *session) {
			r := s.dial(transcript.Data)
			payload := pattern.Bytes(2, 16000)
			s.seeds = append(s.seeds, 2)
			var requests, want bytes.Buffer
			for i := range 8 {
				part := payload[i*1000 : (i+1)*1000]
				offset := int64(i) * 4096
				requests.Write(s.header(1000, offset, 0x81))
				requests.Write(part)
				requests.Write(s.header(1000, offset, 0x80))
				want.WriteString(statusOK + statusOK)
				want.Write(part)
			}
			r.send(requests.Bytes())
			if got := r.receive(want.Len()); !bytes.Equal(got, want.Bytes()) {
				s.Fatalf("got % x", got)
			}
			for i := range int64(8) {
				s.keep(i*4096, 1001)
			}
		},
	},
	{
		file: "raw-pipelined-rejection", about: "four pipelined v2 reads of which the third is rejected", raw: true,
		notes: []string{"the fourth is not answered: a rejection ends the connection"},
		run: func(s *session) {
			r := s.dial(transcript.Data)
			r.send(s.header(4, 0, 0x80), s.header(4, 4, 0x80), s.header(4, -1, 0x80), s.header(4, 0, 0x80))
			if got := r.receiveAll(); len(got) != 32 || string(got[24:]) != statusRejected {
				s.Fatalf("got % x", got)
			}
			r.close()
			s.untilClosed(transcript.Data)
		},
	},
	{
		file: "raw-mixed-versions", about: "v1 and v2 requests on one connection, pipelined", raw: true,
		run: func(s *session) {
			r := s.dial(transcript.Data)
			r.send(s.header(2, 0, 0x01), []byte("ab"), s.header(2, 2, 0x81), []byte("cd"), s.header(4, 0, 0x00), s.header(4, 0, 0x80))
			if got := r.receive(24); string(got) != statusOK+"abcd"+statusOK+"abcd" {
				s.Fatalf("got % x", got)
			}
			s.keep(0, 5)
		},
	},
	{
		file: "raw-dirty-padding", about: "a v2 write whose header has arbitrary padding", raw: true,
		run: func(s *session) {
			r := s.dial(transcript.Data)
			header := s.header(5, 16, 0x81)
			copy(header[17:], "\xde\xad\xbe\xef\x01\x02\x03")
			r.send(header, []byte("hello"))
			if got := r.receive(8); string(got) != statusOK {
				s.Fatalf("got % x", got)
			}
			s.keep(16, 6)
		},
	},
	{
		file: "raw-rejected", about: "v2 requests that the target rejects with status 1 and a close", raw: true,
		notes: []string{"in this order: length 0, behind the end, across the end, before the start, past 2^64"},
		run: func(s *session) {
			for _, header := range [][]byte{
				s.header(0, 0, 0x80),
				s.header(1, regionLength, 0x80),
				s.header(2, regionLength-1, 0x80),
				s.header(1, -1, 0x80),
				dataHeader(16, 0xfffffffffffffff8, 0x80),
			} {
				r := s.dial(transcript.Data)
				r.send(header)
				if got := r.receiveAll(); string(got) != statusRejected {
					s.Fatalf("got % x", got)
				}
				r.close()
				s.untilClosed(transcript.Data)
			}
		},
	},
	{
		file: "raw-half-close", about: "a v2 write and a v2 read behind which the client ends its side", raw: true,
		run: func(s *session) {
			r := s.dial(transcript.Data)
			r.send(s.header(2, 0, 0x81), []byte("ab"), s.header(3, 0, 0x80))
			r.closeWrite()
			if got := r.receiveAll(); len(got) != 19 || string(got[16:18]) != "ab" {
				s.Fatalf("got % x", got)
			}
			r.close()
			s.untilClosed(transcript.Data)
			s.keep(0, 3)
		},
	},
}

const (
	statusOK       = "\x00\x00\x00\x00VTCM"
	statusRejected = "\x01\x00\x00\x00VTCM"
)

func dataHeader(size, addr uint64, opcode byte) []byte {
	h := make([]byte, headerSize)
	binary.LittleEndian.PutUint64(h, size)
	binary.LittleEndian.PutUint64(h[8:], addr)
	h[16] = opcode
	return h
}

func (s *session) header(size uint64, offset int64, opcode byte) []byte {
	return dataHeader(size, s.addr(offset), opcode)
}

// exchange sends one control frame and receives one.
func (s *session) exchange(body string) {
	s.Helper()
	r := s.dial(transcript.Control)
	r.send(binary.LittleEndian.AppendUint64(nil, uint64(len(body))), []byte(body))
	if got := r.receiveAll(); len(got) < 9 {
		s.Fatalf("reply to %q: % x", body, got)
	}
	r.close()
	s.untilClosed(transcript.Control) // the next connection comes after this one in the transcript
}

// refused sends bytes to the control port and wants the connection closed on them.
func (s *session) refused(frame string) {
	s.Helper()
	r := s.dial(transcript.Control)
	r.send([]byte(frame))
	if got := r.receiveAll(); len(got) > 0 {
		s.Fatalf("reply to %q: % x", frame, got)
	}
	r.close()
	s.untilClosed(transcript.Control)
}
