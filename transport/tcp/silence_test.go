package tcp

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// noAnswer is a control port of a frozen process, or behind a dark path.
func noAnswer(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// frozen starts a target that serves nothing until it is thawed.
func frozen(t testing.TB, version int, incarnation uint64) (d *segment.Desc, thaw func()) {
	release := make(chan struct{})
	g := &target{version: version, incarnation: incarnation, before: func(tcpframe.Header) bool { <-release; return true }}
	_, d = g.start(t)
	thaw = sync.OnceFunc(func() { close(release) })
	t.Cleanup(thaw)
	return d, thaw
}

// silentPeers are the ways to be connected to one.
var silentPeers = map[string]struct {
	version     int
	incarnation uint64
}{"moonpath": {2, 4711}, "classic": {2, 0}, "version 1": {1, 0}}

// TestR_LIV_1_ASilentPeerIsAbandonedWithAllThatWaits: what is sent, what is queued, and what nobody has published.
func TestR_LIV_1_ASilentPeerIsAbandonedWithAllThatWaits(t *testing.T) {
	for name, x := range silentPeers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, thaw := frozen(t, x.version, x.incarnation)
			h := openHost(t, "tcp.silence_timeout", "400ms", "tcp.connect_timeout", "400ms")
			m := h.memory(64<<20, false)
			p := &peer{desc: d, ask: noAnswer}
			_, s, err := h.tryDial(p)
			if err != nil {
				t.Fatal(err)
			}
			var ks []*task
			for i := range uint64(100) {
				ks = append(ks, write(m, i*4096, 4096, remoteBase+i*4096), read(m, 32<<20, 4096, remoteBase),
					write(m, 0, 2<<20, remoteBase+1<<20), read(m, 40<<20, 1<<20, remoteBase))
			}
			suspect := write(m, 0, 8, 1)
			begin := time.Now()
			s.submit(append(ks, suspect)...)
			unknown := 0
			for i, k := range append(ks, suspect) {
				within(t, k.ended, "the end of a request to a silent peer")
				if k.fault == nil || k.fault.Code != xfer.Deadline || k.fault.Side != xfer.SidePeer {
					t.Fatalf("task %d ended with %v, want Deadline on the peer's side", i, k.fault)
				}
				if k.certainty == xfer.Unknown {
					unknown++
					if k.op == xfer.Read {
						t.Errorf("the remote state of read %d is unknown", i)
					}
				}
			}
			// The data port of a frozen process may be dialled once more while the others are given up.
			if took := time.Since(begin); took < 350*time.Millisecond || took > 3*time.Second {
				t.Errorf("it took %v with a limit of 400 ms", took)
			}
			if unknown == 0 {
				t.Error("writes that were sent are certain")
			}
			thaw()
			p.mu.Lock()
			p.ask = nil
			p.mu.Unlock()
			eventually(t, "it is back", func() bool { // connections may still be on their way out
				k := write(m, 0, 4096, remoteBase)
				s.submit(k)
				within(t, k.ended, "the end of a request")
				return k.fault == nil
			})
			s.do(write(m, 0, 4096, remoteBase), read(m, 0, 1<<20, remoteBase))
		})
	}
}

func TestASlowPeerWhoseControlPortAnswersIsWaitedFor(t *testing.T) {
	for name, x := range silentPeers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, thaw := frozen(t, x.version, x.incarnation)
			h := openHost(t, "tcp.silence_timeout", "200ms")
			m := h.memory(4<<20, false)
			p := &peer{desc: d}
			_, s, err := h.tryDial(p)
			if err != nil {
				t.Fatal(err)
			}
			ks := []*task{write(m, 0, 4096, remoteBase), read(m, 1<<20, 1<<20, remoteBase)}
			s.submit(ks...)
			eventually(t, "the control port is asked again and again", func() bool { return p.refreshed() >= 3 })
			for _, k := range ks {
				if len(k.ended) > 0 || k.fault != nil {
					t.Errorf("it ended with %v", k.fault)
				}
			}
			thaw()
			s.finish(ks...)
		})
	}
}

func TestAPeerThatWasReplacedIsAbandoned(t *testing.T) {
	t.Parallel()
	d, _ := frozen(t, 2, 4711)
	h := openHost(t, "tcp.silence_timeout", "200ms", "tcp.connect_timeout", "300ms")
	m := h.memory(4096, false)
	other := *d
	ext := *d.Ext
	ext.Incarnation++
	other.Ext = &ext
	_, s, err := h.tryDial(&peer{desc: d, next: &other})
	if err != nil {
		t.Fatal(err)
	}
	k := write(m, 0, 4096, remoteBase)
	s.submit(k)
	within(t, k.ended, "the end of a request to an engine that is gone")
	if k.fault == nil || k.fault.Code != xfer.WrongPeer || k.certainty != xfer.Unknown {
		t.Errorf("it ended with %v, %v", k.fault, k.certainty)
	}
}

func TestSilenceIsNoLimitIfItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	d, thaw := frozen(t, 2, 4711)
	h := openHost(t, "tcp.silence_timeout", "0s")
	m := h.memory(4096, false)
	p := &peer{desc: d, ask: noAnswer}
	_, s, err := h.tryDial(p)
	if err != nil {
		t.Fatal(err)
	}
	k := write(m, 0, 4096, remoteBase)
	s.submit(k)
	always(t, 3*watchEvery, "somebody was asked", func() bool { return p.refreshed() == 0 })
	thaw()
	s.finish(k)
}

// TestACancellationReachesTheSerialConnectionWhileItIsDialled, when there is no connection to end.
func TestACancellationReachesTheSerialConnectionWhileItIsDialled(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	srv := listenRaw(t, func(c *conn) {
		c.header()
		c.reset() // the lane's, and then the serial connection's: the description is asked for before another is made
	})
	h := openHost(t)
	m := h.memory(4096, false)
	p := &peer{desc: srv.desc(2, 0), ask: func(ctx context.Context) error {
		asked <- struct{}{}
		return noAnswer(ctx)
	}}
	_, s, err := h.tryDial(p)
	if err != nil {
		t.Fatal(err)
	}
	k := write(m, 0, 100, remoteBase)
	s.submit(k)
	within(t, asked, "a dial")
	begin := time.Now()
	s.drop(k)
	s.route.Cancel(s.refs(k))
	within(t, k.ended, "the end of a canceled request")
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	if k.fault == nil || k.fault.Code != xfer.Interrupted || k.certainty != xfer.Unknown {
		t.Errorf("it ended with %v, %v", k.fault, k.certainty)
	}
}

// TestASilentDataPortIsNotWaitedForAlthoughTheControlPortAnswers: something between the two filters it.
func TestASilentDataPortIsNotWaitedForAlthoughTheControlPortAnswers(t *testing.T) {
	t.Parallel()
	const incarnation = 4711
	srv := listenRaw(t, func(c *conn) {
		if c.number == 1 {
			c.greet(incarnation)
		}
		c.stand()
	})
	h := openHost(t, "tcp.silence_timeout", "400ms", "tcp.connect_timeout", "400ms")
	m := h.memory(4096, false)
	_, s := h.dial(srv.desc(2, incarnation))
	k := write(m, 0, 4096, remoteBase)
	begin := time.Now()
	s.submit(k)
	within(t, k.ended, "the end of a request to a silent data port")
	if took := time.Since(begin); k.fault == nil || k.fault.Code != xfer.Deadline || took > 2*time.Second {
		t.Errorf("it ended with %v after %v", k.fault, took)
	}
}
