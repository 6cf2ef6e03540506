package cxx

import (
	"encoding/binary"

	"github.com/moonpath-io/moonpath/interop/transcript"
)

// joinRequests moves the rest of a request, sent after the target had begun to answer, up to its beginning: an early answer
// is a matter of timing.
func joinRequests(raw []rawEvent) []rawEvent {
	var out []rawEvent
	ports := map[int]transcript.Port{}
	begun := map[int]int{}      // per connection, where in out a request is not complete
	missing := map[int]uint64{} // and how much of it lacks
	for _, e := range raw {
		if e.kind == transcript.Opened {
			ports[e.conn] = e.port
		}
		if e.kind == transcript.Sent && e.from == transcript.Initiator && ports[e.conn] == transcript.Data {
			late := min(missing[e.conn], uint64(len(e.bytes)))
			if late > 0 {
				request := &out[begun[e.conn]]
				request.bytes = append(request.bytes, e.bytes[:late]...)
				missing[e.conn] -= late
				e.bytes = e.bytes[late:]
			}
			if len(e.bytes) == 0 {
				continue
			}
			begun[e.conn], missing[e.conn] = len(out), lacking(e.bytes)
		}
		out = append(out, e)
	}
	return out
}

// lacking is the number of bytes that the last of the requests in b lacks.
func lacking(b []byte) uint64 {
	for len(b) >= headerSize {
		payload, here := uint64(0), uint64(len(b)-headerSize)
		if carriesPayload(b) {
			payload = binary.LittleEndian.Uint64(b)
		}
		if payload > here {
			return payload - here
		}
		b = b[headerSize+payload:]
	}
	return 0
}
