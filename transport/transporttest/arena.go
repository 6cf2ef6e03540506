package transporttest

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/mem"
)

// arena is registered memory of one end, from which a case gets ranges that nobody else uses.
type arena struct {
	name    string
	mapping *mem.Mapping
	region  *mem.Region
	end     uint64 // of what is handed out and its guard
	gaps    []span // guarded bytes around what is handed out
}

type span struct{ off, len uint64 }

const (
	arenaBytes = 64 << 20
	pageBytes  = 4096
	gapBytes   = 64
	tailBytes  = 64 << 10 // kept for ranges at the very end
)

// memory maps and registers n bytes at an end, and attaches them to its transport. No other registration touches them.
func (x *rig) memory(name string, e *End, n uint64, remote bool) *arena {
	x.Helper()
	m, err := mem.Map(n+2*pageBytes, false)
	if err != nil {
		x.Fatalf("no memory for the test: %v", err)
	}
	a := &arena{name: name, mapping: m}
	x.arenas = append(x.arenas, a)
	rs, err := e.Regions.Register([]mem.Spec{{Addr: mem.AddrOf(m.Bytes()) + pageBytes, Len: n, Remote: remote}})
	if err != nil {
		x.Fatalf("memory of the test cannot be registered: %v", err)
	}
	if err := e.Transport.Attach(x.Context(), rs); err != nil {
		x.fatal("Attach of %d bytes of host memory: %v", n, err)
	}
	a.region = rs[0]
	return a
}

// lose makes the memory inaccessible, as if it had been unmapped; nothing else can come to lie there.
func (a *arena) lose() error { return unix.Mprotect(a.region.Bytes(), unix.PROT_NONE) }

// place hands out n bytes that start skew bytes behind an aligned address, guarded on both sides from now on.
func (a *arena) place(n, skew uint64) uint64 {
	off := (a.end+gapBytes+63)&^63 + skew
	a.guard(span{a.end, off - a.end})
	a.guard(span{off + n, gapBytes})
	a.end = off + n + gapBytes
	if a.end > a.region.Len-tailBytes {
		panic(fmt.Sprintf("transporttest: the %s arena is too small", a.name))
	}
	return off
}

// tail hands out the last n bytes of the region.
func (a *arena) tail(n uint64) uint64 {
	off := a.region.Len - n
	a.guard(span{off - gapBytes, gapBytes})
	return off
}

func (a *arena) guard(s span) {
	paint(a.bytes(s), guard)
	a.gaps = append(a.gaps, s)
}

func (a *arena) bytes(s span) []byte { return a.region.Bytes()[s.off : s.off+s.len] }

// overrun returns where a byte beside a range, or beside the region, was changed.
func (a *arena) overrun() (off uint64, changed bool) {
	all := a.mapping.Bytes()
	if stained(all[:pageBytes], 0) >= 0 || stained(all[pageBytes+a.region.Len:], 0) >= 0 {
		return a.region.Len, true
	}
	for _, s := range a.gaps {
		if i := stained(a.bytes(s), guard); i >= 0 {
			return s.off + uint64(i), true
		}
	}
	return 0, false
}
