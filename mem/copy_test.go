package mem

import (
	"errors"
	"runtime/debug"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/xfer"
)

// mapped registers memory of its own mapping, as a caller without the Go heap does.
func mapped(t *testing.T, table *Table, n uint64) (*Mapping, Lease) {
	t.Helper()
	m, err := Map(n, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Free() })
	rs := register(t, table, Spec{Addr: addressOf(m), Len: n})
	return m, Lease{Region: rs[0]}
}

func TestCopyOfUnmappedMemoryIsAnError(t *testing.T) {
	for name, spoil := range map[string]func(*Mapping) error{
		"unmapped":  func(m *Mapping) error { return m.Free() },
		"protected": func(m *Mapping) error { return unix.Mprotect(m.Bytes(), unix.PROT_NONE) },
	} {
		t.Run(name, func(t *testing.T) {
			defer ExpectFaults()()
			var table Table
			m, lease := mapped(t, &table, 1<<16)
			good := make([]byte, 1<<16)
			if n, err := Copy(good, lease.View(0, 1<<16)); n != 1<<16 || err != nil {
				t.Fatalf("before: %d bytes, %v", n, err)
			}
			if err := spoil(m); err != nil {
				t.Fatal(err)
			}
			for direction, call := range map[string]func() (int, error){
				"out of it": func() (int, error) { return Copy(good, lease.View(100, 1000)) },
				"into it":   func() (int, error) { return Copy(lease.View(100, 1000), good) },
			} {
				n, err := call()
				if n != 0 || !errors.Is(err, ErrUnmapped) || !errors.Is(err, syscall.EFAULT) {
					t.Errorf("%s: %d bytes, %v", direction, n, err)
				}
				f := &xfer.Fault{Code: xfer.Memory, Cause: err}
				if f.Errno() != syscall.EFAULT {
					t.Errorf("%s: errno %v in a fault", direction, f.Errno())
				}
			}
		})
	}
}

func TestCopyCopiesTheShorterLength(t *testing.T) {
	dst := make([]byte, 3)
	if n, err := Copy(dst, []byte("moon")); n != 3 || err != nil || string(dst) != "moo" {
		t.Errorf("%d bytes, %v, %q", n, err, dst)
	}
	if n, err := Copy(dst, nil); n != 0 || err != nil {
		t.Errorf("from nothing: %d bytes, %v", n, err)
	}
}

func TestExpectFaultsRestoresWhatWasSet(t *testing.T) {
	for _, before := range []bool{false, true} {
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(before))
			restore := ExpectFaults()
			if !debug.SetPanicOnFault(true) {
				t.Error("faults are not expected inside")
			}
			restore()
			if after := debug.SetPanicOnFault(before); after != before {
				t.Errorf("setting %v became %v", before, after)
			}
		}()
	}
}
