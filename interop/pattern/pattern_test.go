package pattern

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The expected values were computed with Python: hashlib.shake_128(seed.to_bytes(8, "little")) and hashlib.sha256.
func TestValuesAgreeWithPython(t *testing.T) {
	for _, c := range []struct {
		seed     uint64
		hex, sum string
	}{
		{0, "7a24b666da345c98c3a400aafd14a51a", "9de980b87371782954f40bd2c8a99bad554732eca56d67ef716b49ba198a4f49"},
		{1 << 63, "dd9748b498fedde63358bfbf334a00e8", "7cf0e68c9a9500e5239090b398fb9094cdabceedbf3cec1f1f81d45a276f67e0"},
	} {
		got := Bytes(c.seed, 16)
		if hex.EncodeToString(got) != c.hex {
			t.Errorf("Bytes(%d, 16) = %x, want %s", c.seed, got, c.hex)
		}
		if sum := Checksum(got); sum != c.sum {
			t.Errorf("Checksum(Bytes(%d, 16)) = %s, want %s", c.seed, sum, c.sum)
		}
	}
}

func TestShorterIsPrefixOfLonger(t *testing.T) {
	long := Bytes(7, 1000)
	for _, n := range []int{0, 1, 167, 168, 169, 999} {
		if short := Bytes(7, n); len(short) != n || !bytes.HasPrefix(long, short) {
			t.Errorf("Bytes(7, %d) is no prefix of Bytes(7, 1000)", n)
		}
	}
}

func TestSeedsShareNothing(t *testing.T) {
	if bytes.Contains(Bytes(1, 4096), Bytes(2, 8)) {
		t.Error("eight bytes of pattern 2 occur in pattern 1")
	}
}
