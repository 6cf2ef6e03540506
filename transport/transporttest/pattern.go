package transporttest

import (
	"bytes"
	"math/rand/v2"
)

// block is what all content is cut from. Its length is prime, so that a piece which lands at a wrong place shows.
var block = func() []byte {
	b := make([]byte, 65521)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// content is an endless text; two of them differ nearly everywhere.
type content uint32

// at returns the longest run of the text from position i on that lies in one piece.
func (c content) at(i uint64) []byte {
	return block[(uint64(c)*4099+i)%uint64(len(block)):]
}

// fill writes the text from position i on into b.
func (c content) fill(b []byte, i uint64) {
	for len(b) > 0 {
		n := copy(b, c.at(i))
		b, i = b[n:], i+uint64(n)
	}
}

// differs returns the first position in b that does not hold the text from position i on; -1 if all do.
func (c content) differs(b []byte, i uint64) int {
	for done := 0; done < len(b); {
		want := c.at(i + uint64(done))
		n := min(len(want), len(b)-done)
		if !bytes.Equal(b[done:done+n], want[:n]) {
			for b[done] == want[0] {
				done, want = done+1, want[1:]
			}
			return done
		}
		done += n
	}
	return -1
}

const (
	poison = 0xdb // in local memory once it has been given back
	guard  = 0xa5 // around each range
)

func paint(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

// stained returns the first position in b that holds something else; -1 if none does.
func stained(b []byte, than byte) int {
	for i, x := range b {
		if x != than {
			return i
		}
	}
	return -1
}
