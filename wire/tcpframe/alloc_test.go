//go:build !race

package tcpframe

import "testing"

func TestAllocsOfHeadersAndStatusFrames(t *testing.T) {
	var header [HeaderLen]byte
	status := make([]byte, StatusLen)
	var sum uint64
	got := testing.AllocsPerRun(100, func() {
		PutHeader(&header, 1, 2, OpV2)
		PutStatus(status, BadRequest)
		code, _ := ParseStatus(status)
		sum += ParseHeader(header[:]).Size + uint64(code) + uint64(len(StatusText(OK)))
	})
	if got != 0 || sum == 0 {
		t.Errorf("%v allocations per header and status frame, want none", got)
	}
}
