//go:build !race

package jsoncpp

import "testing"

func TestAllocsOfAppendString(t *testing.T) {
	dst := make([]byte, 0, 128)
	if got := testing.AllocsPerRun(100, func() { dst = AppendString(dst[:0], "a\"ü😀\xff") }); got != 0 {
		t.Errorf("%v allocations with enough capacity, want none", got)
	}
}

func TestAllocsOfWalking(t *testing.T) {
	text := []byte(`{"unread":[[["deep"]],{"a":"b"}],"n":12}`)
	var sum uint64
	got := testing.AllocsPerRun(100, func() {
		v, _ := Parse(text)
		for key, value := range v.Members() {
			if string(key) == "n" {
				n, _ := value.Uint64()
				sum += n
			}
		}
	})
	if got > 1 || sum == 0 { // one for the open brackets
		t.Errorf("%v allocations for a walk, want at most 1", got)
	}
}
