package interop

import (
	"errors"
	"fmt"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

const badSize = 4096 // of each region that is asked for in vain

// badAddresses are places in and around a moonpath engine's memory of which no peer may touch badSize bytes.
func badAddresses(t *testing.T, e *moonpath.Engine, good *region) map[string]uint64 {
	t.Helper()
	private, err := e.Alloc(badSize, moonpath.AllocOptions{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	gone := alloc(t, e, badSize)
	if err := e.UnregisterLocalMemory(gone.At(0)); err != nil {
		t.Fatal(err)
	}
	end := good.addr + uint64(len(good.want))
	return map[string]uint64{
		"before the region": good.addr - 1,
		"across its end":    end - badSize + 1,
		"behind its end":    end,
		"unregistered":      uint64(gone.At(0)),
		"local only":        uint64(private.At(0)),
		"nowhere":           1,
		"past 2^64":         1<<64 - badSize,
	}
}

// wantCode checks the result of a call of the C++ engine: 0 is success.
func wantCode(t *testing.T, what string, err error, code int) {
	t.Helper()
	if got, err := codeOf(err); err != nil || got != code {
		t.Errorf("%s: code %d, want %d (%v)", what, got, code, err)
	}
}

func codeOf(err error) (int, error) {
	var failed *cxx.CallFailed
	if errors.As(err, &failed) {
		return failed.Code, nil
	}
	return 0, err
}

func TestMoonpathTargetRejects(t *testing.T) {
	needCxx(t)
	const size = mib
	for _, v := range []struct {
		name  string
		env   []string
		write int // result of a rejected write
	}{
		{"v2", []string{noPool}, -1},
		// A rejected write of version 1 is a success for this engine, which nobody tells otherwise.
		{"v1", []string{noPool, protocolV1}, 0},
	} {
		t.Run(v.name, func(t *testing.T) {
			peer := cxx.Start(t, v.env...)
			local := newCxxRegion(t, peer, size)
			engine := openEngine(t, nil)
			target, _ := newMoonpathRegion(t, engine, size)
			for name, bad := range badAddresses(t, engine, target) {
				t.Run(name, func(t *testing.T) {
					local.fill(t, 0, badSize, 30)
					err := peer.Transfer(cxx.Write, engine.Name(), local.addr, bad, badSize)
					wantCode(t, "write", err, v.write)
					err = peer.Transfer(cxx.Read, engine.Name(), local.addr, bad, badSize)
					wantCode(t, "read", err, -1)
					local.checkAll(t, "memory of the peer")
					target.checkAll(t, "target's memory")
				})
			}
			wantCode(t, "a good read afterwards", peer.Transfer(cxx.Read, engine.Name(), local.addr, target.addr, size), 0)
			copy(local.want, target.want)
			local.checkAll(t, "read")
		})
	}
}

// turn is a bad request and a good one behind it.
type turn struct{ bad, good int }

func takeTurns(t *testing.T, peer *cxx.Peer, local uint64, target string, good uint64, size uint64) (codes [6]turn) {
	t.Helper()
	const n = 100
	code := func(remote uint64) int {
		code, err := codeOf(peer.Transfer(cxx.Write, target, local, remote, n))
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	for i := range codes {
		codes[i] = turn{bad: code(good + size), good: code(good)}
	}
	return codes
}

// TestMoonpathTargetRejectsByTurns compares moonpath with a C++ target. With its pool the C++ initiator fails an innocent
// request when the fourth connection breaks, whoever breaks it (wire spec, section 4.7); without pool it never does.
func TestMoonpathTargetRejectsByTurns(t *testing.T) {
	needCxx(t)
	const size = 64 * kib
	for name, env := range map[string][]string{"with pool": nil, "without pool": {noPool}} {
		t.Run(name, func(t *testing.T) {
			peer, other := cxx.Start(t, env...), cxx.Start(t)
			local, remote := allocCxx(t, peer, size), allocCxx(t, other, size)
			engine := openEngine(t, nil)
			memory := alloc(t, engine, size)
			want := takeTurns(t, peer, local, other.Name, remote, size)
			if env != nil && want != [6]turn{{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}} {
				t.Errorf("with a C++ target: %v", want)
			}
			if got := takeTurns(t, peer, local, engine.Name(), uint64(memory.At(0)), size); got != want {
				t.Errorf("with a moonpath target: %v, with a C++ target: %v", got, want)
			}
		})
	}
}

func TestMoonpathTargetRejectsOneOfABatch(t *testing.T) {
	needCxx(t)
	const count, block = 100, 4096
	for _, env := range [][]string{nil, {noPool}} {
		t.Run(fmt.Sprint(env), func(t *testing.T) {
			peer := cxx.Start(t, env...)
			local := newCxxRegion(t, peer, count*block)
			engine := openEngine(t, nil)
			target, memory := newMoonpathRegion(t, engine, count*block)
			gone := alloc(t, engine, block)
			if err := engine.UnregisterLocalMemory(gone.At(0)); err != nil {
				t.Fatal(err)
			}
			local.fill(t, 0, count*block, 40)
			b := cxx.Batch{Op: cxx.Write, Target: engine.Name()}
			for i := range uint64(count) {
				b.Locals = append(b.Locals, local.addr+i*block)
				b.Remotes = append(b.Remotes, target.addr+i*block)
				b.Lengths = append(b.Lengths, block)
			}
			b.Remotes[57] = uint64(gone.At(0))
			wantCode(t, "batch", peer.BatchTransfer(b), -1)

			eventually(t, "all good blocks stored", func() bool { return counter(engine, "tcp", "requests_served") >= count })
			before := pattern.Bytes(background, count*block)
			for i := range count {
				want := local.want[i*block : (i+1)*block]
				if i == 57 {
					want = before[i*block : (i+1)*block]
				}
				if difference := firstDifference(memory.Bytes()[i*block:(i+1)*block], want); difference != "" {
					t.Errorf("block %d: %s", i, difference)
				}
			}
			if got := counter(engine, "tcp", "requests_rejected"); got != 1 {
				t.Errorf("%d requests rejected, want 1", got)
			}
		})
	}
}
