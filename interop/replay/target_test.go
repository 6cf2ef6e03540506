package replay

import (
	"bytes"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// received are the notifications that a target has got by the end of a transcript.
var received = map[string][]moonpath.Notify{
	"notify":                {{Name: "nm", Text: "ünï"}},
	"raw-notify-odd-fields": {{}, {Name: "n"}, {Name: "7", Text: "m"}},
}

func TestMoonpathAsTarget(t *testing.T) {
	for name, tr := range transcripts(t) {
		t.Run(name, func(t *testing.T) {
			engine := openEngine(t, nil)
			region := tr.Regions[0]
			memory := alloc(t, engine, region.Length)
			copy(memory.Bytes(), pattern.Bytes(region.Seed, int(region.Length)))
			self, err := engine.Segment(moonpath.LocalSegment)
			if err != nil {
				t.Fatal(err)
			}
			b := tr.Recorded()
			b.Strings[nameSymbol] = engine.Name()
			b.Numbers[dataPortSymbol] = uint64(self.TCP.Port)
			b.Numbers[region.Name] = uint64(memory.At(0))
			addrs := map[transcript.Port]string{
				transcript.Control: engine.Name(),
				transcript.Data:    net.JoinHostPort("127.0.0.1", strconv.Itoa(int(self.TCP.Port))),
			}
			player := transcript.Player{
				Role: transcript.Initiator, Bindings: b, Frame: classic,
				Connect: func(p transcript.Port) (net.Conn, error) { return net.DialTimeout("tcp", addrs[p], time.Minute) },
			}
			if err := player.Play(tr); err != nil {
				t.Fatal(err)
			}
			for _, m := range tr.After {
				want, err := m.Content.Bytes(b)
				if err != nil {
					t.Fatal(err)
				}
				if got := memory.Bytes()[m.At.Offset:][:len(want)]; !bytes.Equal(got, want) {
					t.Errorf("memory at %v is not %v", m.At, m.Content)
				}
			}
			if diff := cmp.Diff(received[name], engine.GetNotifies()); diff != "" {
				t.Errorf("notifications (-want +got):\n%s", diff)
			}
		})
	}
}
