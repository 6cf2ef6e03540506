package p2p

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// logBook keeps what is logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logBook) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(l.text.String(), "\n")[:strings.Count(l.text.String(), "\n")]
}

func TestDescriptionIsMadeWhenFirstAskedFor(t *testing.T) {
	n := silentNode(t, loopback, 15001)
	d := publish(t, n, 10)
	made := 0
	err := n.Publish(t.Context(), func() *segment.Desc { made++; return d })
	if err != nil || made > 0 {
		t.Errorf("publishing made it %d times, %v", made, err)
	}
	var asked sync.WaitGroup
	frames := make([][]byte, 16)
	for i := range frames {
		asked.Go(func() { frames[i] = n.descriptorFrame() })
	}
	asked.Wait()
	for _, f := range frames {
		if &f[0] != &frames[0][0] || made != 1 {
			t.Fatal("made more than once")
		}
	}
	publish(t, n, 11)
	if got := n.descriptorFrame(); bytes.Equal(got, frames[0]) {
		t.Error("the old description is still there")
	}
}

func TestDescriptionThatPeersCannotUseIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		desc segment.Desc
		says string
	}{
		"no protocol":  {segment.Desc{Name: "127.0.0.1:15001"}, "no protocol"},
		"another name": {segment.Desc{Name: "127.0.0.1:1", Protocols: []string{"tcp"}}, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBook{}
			n := silentNode(t, loopback, 15001)
			n.options.Log = log.logger()
			publishDesc(t, n, &c.desc)
			if got := n.descriptorFrame(); !bytes.Equal(got, noDescriptor()) {
				t.Errorf("sent %q", got)
			}
			if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], c.says) {
				t.Errorf("logged %q", lines)
			}
		})
	}
}

func TestDescriptionThatNoPeerCouldReadIsNotSent(t *testing.T) {
	log := &logBook{}
	n := silentNode(t, loopback, 15001)
	n.options.Log = log.logger()
	d := publish(t, n, 2)
	d.Buffers[1].Addr = 0
	if got := n.descriptorFrame(); !bytes.Equal(got, noDescriptor()) {
		t.Errorf("sent %q", got)
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "buffers[1].addr") {
		t.Errorf("logged %q", lines)
	}
}

func TestSegmentWithoutTCPSaysVersion1(t *testing.T) {
	n := silentNode(t, loopback, 15001)
	publishDesc(t, n, &segment.Desc{Name: n.Name(), Protocols: []string{"local"}})
	if got := n.descriptorFrame(); !bytes.Contains(got, []byte(`"tcp_data_port":0,"tcp_proto_version":1,`)) {
		t.Errorf("sent %q", got)
	}
}

func TestLargeDescriptionIsSentWithAWarning(t *testing.T) {
	log := &logBook{}
	n := listenNode(t, func(o *Options) { o.Log = log.logger() })
	publish(t, n, 20000)
	small, large := listenNode(t, nil), listenNode(t, func(o *Options) { o.MaxFrame = 16 << 20 })
	_, err := small.Lookup(t.Context(), n.Name())
	mustFault(t, err, xfer.Socket, xfer.StageResolve, "MC_HANDSHAKE_MAX_LENGTH")
	if d, err := large.Lookup(t.Context(), n.Name()); err != nil || len(d.Buffers) != 20000 {
		t.Errorf("with a larger limit: %v", err)
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "MC_HANDSHAKE_MAX_LENGTH") {
		t.Errorf("logged %q", lines)
	}
	if size := len(n.descriptorFrame()); size <= int(ctrlframe.DefaultLimit) {
		t.Errorf("only %d bytes", size)
	}
}
