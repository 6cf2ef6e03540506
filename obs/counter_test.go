package obs

import (
	"reflect"
	"sync"
	"testing"
)

func TestCounterAndGaugeAddFromManyGoroutines(t *testing.T) {
	var c Counter
	var g Gauge
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c.Add(3)
				g.Add(2)
				g.Add(-1)
			}
		})
	}
	wg.Wait()
	if c.Load() != 24000 || g.Load() != 8000 {
		t.Errorf("counter %d, gauge %d, want 24000 and 8000", c.Load(), g.Load())
	}
	if g.Set(-7); g.Load() != -7 {
		t.Errorf("gauge is %d after Set(-7)", g.Load())
	}
}

// TestNeighboursShareNoCacheLine checks that at least a line lies between the numbers of two
// neighbours, however the array is aligned.
func TestNeighboursShareNoCacheLine(t *testing.T) {
	const line = 64
	for _, typ := range []reflect.Type{reflect.TypeFor[Counter](), reflect.TypeFor[Gauge]()} {
		n, _ := typ.FieldByName("n")
		before, after := n.Offset, typ.Size()-n.Offset-n.Type.Size()
		if before < line || after < line {
			t.Errorf("%s: %d bytes before the number and %d after it, want a line of %d", typ, before, after, line)
		}
	}
}
