package p2p

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

const (
	// lengthLen is the size of the length in front of a request. ctrlframe checks it before it reads on.
	lengthLen = 8
	// smallRequest is the length up to which a request needs no turn: what the largest number of
	// connections may hold at a time without one. Most requests are far below.
	smallRequest = 16 << 10
)

// requestReader reads the request of one session.
type requestReader struct {
	pacedReader
	slots   *slots
	session *session
	length  [lengthLen]byte
	got     int
}

func (r *requestReader) Read(b []byte) (int, error) {
	if r.got == lengthLen && binary.LittleEndian.Uint64(r.length[:]) > smallRequest {
		if err := r.takeTurn(); err != nil {
			return 0, err
		}
	}
	got, err := r.pacedReader.Read(b)
	if r.got < lengthLen {
		copy(r.length[r.got:], b[:got])
	}
	r.got += got
	return got, err
}

// takeTurn waits for a turn. That time is not the peer's.
func (r *requestReader) takeTurn() error {
	start := time.Now()
	if !r.slots.takeTurn(r.session) {
		return net.ErrClosed
	}
	return r.setDeadline(r.deadline.Add(time.Since(start)))
}

// readRequest reads one frame. A metadata request may be larger than the limit, since published engines
// put their own description into it and do not look at its size; it is then skipped.
func readRequest(r io.Reader, limit uint64) (ctrlframe.Frame, error) {
	f, err := ctrlframe.Read(r, limit)
	var bad *ctrlframe.Error
	if !errors.As(err, &bad) || bad.Kind != ctrlframe.TooLong || bad.Length > ctrlframe.MaxLimit {
		return f, err
	}
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return f, &ctrlframe.Error{Kind: ctrlframe.Truncated, Length: bad.Length, Cause: err}
	}
	if ctrlframe.Type(first[0]) != ctrlframe.Metadata {
		return f, bad
	}
	skipped, err := io.CopyN(io.Discard, r, int64(bad.Length-1))
	if err != nil {
		return f, &ctrlframe.Error{Kind: ctrlframe.Truncated, Length: bad.Length, Got: 1 + uint64(skipped), Cause: err}
	}
	return ctrlframe.Frame{Type: ctrlframe.Metadata}, nil
}
