package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// link is a connection whose peer is known.
type link struct {
	conn    *net.TCPConn
	version int   // of the data protocol
	reuse   bool  // the peer keeps the connection after an exchange
	drains  bool  // a rejection does not end the connection
	window  int64 // payload that a lane may have under way on it
}

// dial connects to the engine that the route was opened to. A moonpath peer proves that it is that one; of a
// published peer, which cannot, the description is fetched anew if a connection has ended since the last time. If
// another engine has taken its place the error is WrongPeer: what is queued names memory of the old one and must
// not reach the new one. After any failure the description is fetched anew, so that the next request knows where
// the peer is now.
func (r *route) dial(ctx context.Context) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, r.t.opt.connect*9/10)
	defer cancel()
	if r.desc.Ext == nil && r.lost.Swap(false) && r.replaced(ctx) {
		return link{}, r.wrongPeer(r.desc, nil)
	}
	d := r.desc
	if now := r.peer.Desc(); now.SameOwner(d) {
		d = now // its data port may have moved
	}
	l, err := r.connect(ctx, d)
	if errors.Is(err, errHelloCut) {
		l, err = r.connect(ctx, d) // as any connection that the peer ends
	}
	if err != nil && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, r.t.opt.connect*3/10)
		defer cancel()
		if _, refreshErr := r.ask(asking); refreshErr != nil {
			r.t.log.Debug("description of an unreachable peer not fetched", "peer", r.desc.Name, "error", refreshErr)
			silent(err, refreshErr)
		}
	}
	return l, err
}

// silent completes the fault of a dial that got no answer if the control port gave none either.
func silent(err, refreshErr error) {
	var f *xfer.Fault
	if errors.As(err, &f) && f.Code == xfer.Deadline && xfer.ErrnoOf(refreshErr) == 0 {
		f.Detail += "; its control port does not answer either"
		blameSilence(f)
	}
}

// replaced asks whether another engine has taken the peer's place. It leaves time for the dial: the control port
// of a published engine answers nobody for five seconds while somebody else's connection idles there (wire spec,
// section 9.2), and its data port is as good as ever meanwhile.
func (r *route) replaced(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.t.opt.connect*3/10)
	defer cancel()
	newer, err := r.ask(ctx)
	if err == nil && newer.SameOwner(r.desc) {
		return false
	}
	r.lost.Store(true) // asked again next time
	return err == nil
}

func (r *route) connect(ctx context.Context, d *segment.Desc) (link, error) {
	r.t.count.dials.Add(1)
	l := link{version: 2, reuse: true}
	if r.versionOne() {
		l.version, l.reuse = 1, d.TCP.Version > 0
	}
	connecting, cancel := context.WithTimeout(ctx, r.t.opt.connect*6/10)
	defer cancel()
	c, err := dialer.DialContext(connecting, "tcp", d.TCP.Address())
	if errors.Is(err, unix.ECONNRESET) { // it was accepted, as with errHelloCut
		c, err = dialer.DialContext(connecting, "tcp", d.TCP.Address())
	}
	if err != nil {
		r.t.count.refusedDials.Add(1)
		return link{}, r.dialFault(d, err)
	}
	l.conn = c.(*net.TCPConn)
	tune(l.conn)
	l.window = farWindow
	if withinHost(l.conn) {
		l.window = nearWindow
	}
	if l.version == 2 && d.Ext != nil && d.Ext.HelloVersion > 0 {
		if l.drains, err = hello(ctx, l.conn, d.Ext.Incarnation); err != nil {
			reset(l.conn)
			r.t.count.refusedDials.Add(1)
			return link{}, r.helloFault(d, err)
		}
	}
	return l, nil
}

// dialer leaves keep-alive to setLiveness.
var dialer = net.Dialer{KeepAlive: -1}

// versionOne reports whether the route speaks version 1, in which a peer refuses by closing.
func (r *route) versionOne() bool { return r.t.opt.forceV1 || r.desc.TCP.Version < 2 }

// tune sets what both roles need. The net package has switched off the delay of small segments.
func tune(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		setLiveness(int(fd))
		if withinHost(c) {
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, unpaced)
		}
	})
}

// setLiveness makes the kernel find out that a peer is gone, although nothing is sent, or although nothing that was
// sent is acknowledged. A refused option only makes that later.
func setLiveness(fd int) {
	_ = sysx.SetOption(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = sysx.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15)
	_ = sysx.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5)
	_ = sysx.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
	setUserTimeout(fd)
}

// setUserTimeout bounds how long the kernel tries to deliver. Of what setLiveness sets, it alone is not inherited by
// accepted connections.
func setUserTimeout(fd int) {
	_ = sysx.SetOption(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
}

// unpaced is the congestion control of connections that do not leave the host; every kernel has it and lets
// every user choose it. Where the system's default is bbr, pacing by timers costs a connection over loopback a
// third of its rate and up to twice the CPU time, for a path on which nothing can be congested.
const unpaced = "reno"

func withinHost(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, also := c.RemoteAddr().(*net.TCPAddr)
	return ok && also && local.IP.Equal(remote.IP)
}

// userTimeout is how long the kernel tries to deliver what was sent to a peer that does not acknowledge.
const userTimeout = 30 * time.Second

var (
	errHelloCut         = errors.New("the connection ended before hello was answered")
	errWrongIncarnation = errors.New("the peer's incarnation is another one")
	errWrongVersion     = errors.New("the peer chose a version of hello that it was not offered")
)

// hello proves that the process behind c is the one that was expected, and says whether it stays connected
// after a rejection. Nothing else is sent before the answer is there.
func hello(ctx context.Context, c *net.TCPConn, incarnation uint64) (drains bool, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		// Old engines do not answer; half of the time is left to find out who is there.
		_ = c.SetDeadline(time.Now().Add(time.Until(deadline) / 2))
		defer func() { _ = c.SetDeadline(time.Time{}) }()
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var frame [tcpframe.HeaderLen]byte
	tcpframe.PutHello(&frame, tcpframe.Hello{Incarnation: incarnation, MaxVersion: tcpframe.HelloVersion, MinVersion: tcpframe.HelloVersion, Features: tcpframe.FeatureDrain})
	if _, err := c.Write(frame[:]); err != nil {
		if errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
			return false, errHelloCut
		}
		return false, err
	}
	var answer [tcpframe.HelloAnswerLen]byte
	n, err := io.ReadFull(c, answer[:tcpframe.StatusLen])
	if n == 0 && (err == io.EOF || errors.Is(err, unix.ECONNRESET)) {
		return false, errHelloCut // says nothing about who is there
	}
	if err != nil {
		return false, err
	}
	if code, ok := tcpframe.ParseStatus(answer[:]); ok && code != tcpframe.AddressRejected {
		rest, _ := io.ReadFull(c, answer[tcpframe.StatusLen:]) // an answer that is too short is an error below
		n += rest
	}
	a, err := tcpframe.ParseHelloAnswer(answer[:n])
	switch {
	case err != nil:
		return false, err
	case a.Code == tcpframe.WrongIncarnation || a.Incarnation != incarnation:
		return false, errWrongIncarnation
	case a.Code != tcpframe.OK:
		return false, errors.New(tcpframe.StatusText(a.Code))
	case a.Version != tcpframe.HelloVersion:
		return false, errWrongVersion
	}
	return a.Features&tcpframe.FeatureDrain != 0 && a.DrainLimit >= pieceBytes, nil
}

func (r *route) dialFault(d *segment.Desc, err error) *xfer.Fault {
	f := &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageDial, Path: Name, Peer: d.Name, Retry: xfer.Refresh, Cause: err, Detail: "no data connection to " + d.TCP.Address()}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		f.Code = xfer.DNS
	case timedOut(err):
		f.Code = xfer.Deadline
	}
	return f
}

func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// helloFault tells a peer that cannot be reached from one that is somebody else.
func (r *route) helloFault(d *segment.Desc, err error) *xfer.Fault {
	if timedOut(err) || r.ctx.Err() != nil {
		f := r.dialFault(d, err)
		f.Detail = "no answer to hello from " + d.TCP.Address()
		f.Next = "the peer is frozen, cut off, or replaced by an engine that knows no hello: moonpath probe NAME tells which"
		return f
	}
	if errors.Is(err, errHelloCut) {
		f := r.dialFault(d, err)
		f.Side, f.Next = xfer.SidePeer, "the peer has just ended or is about to start, or another program has its port: moonpath segment NAME tells"
		return f
	}
	return r.wrongPeer(d, err)
}

func (r *route) wrongPeer(d *segment.Desc, cause error) *xfer.Fault {
	return &xfer.Fault{Code: xfer.WrongPeer, Stage: xfer.StageDial, Path: Name, Peer: d.Name, Retry: xfer.Refresh, Cause: cause,
		Detail: "the process at " + d.TCP.Address() + " is not the engine that the request was meant for",
		Next:   "the peer was restarted or replaced: ask it for its memory again (moonpath segment NAME), then submit again"}
}
