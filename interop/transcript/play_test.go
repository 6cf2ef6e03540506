package transcript

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ports gives a dialler and an acceptor that share two loopback ports.
func ports(t *testing.T) (dial, accept func(Port) (net.Conn, error)) {
	t.Helper()
	listeners := map[Port]net.Listener{}
	for _, p := range []Port{Control, Data} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		listeners[p] = l
	}
	dial = func(p Port) (net.Conn, error) { return net.Dial("tcp", listeners[p].Addr().String()) }
	accept = func(p Port) (net.Conn, error) { return listeners[p].Accept() }
	return dial, accept
}

// playBoth plays theirs as the target against ours as the initiator.
func playBoth(t *testing.T, ours, theirs *Transcript, player Player) (initiator, target error) {
	t.Helper()
	dial, accept := ports(t)
	result := make(chan error, 1)
	go func() {
		p := Player{Role: Target, Bindings: theirs.Recorded(), Connect: accept}
		result <- p.Play(theirs)
	}()
	player.Bindings, player.Connect = ours.Recorded(), dial
	initiator = player.Play(ours)
	return initiator, <-result
}

func TestBothSidesOfATranscriptAgree(t *testing.T) {
	texts := map[string]string{"example": example}
	for _, file := range keptFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			tr := parse(t, text)
			initiator, target := playBoth(t, tr, tr, Player{})
			if initiator != nil || target != nil {
				t.Errorf("initiator: %v\ntarget: %v", initiator, target)
			}
		})
	}
}

const exchange = "moonpath-transcript 1\n1 open data\n1 > 01 02\n1 < 03 04\n1 < eof\n1 > eof\n"

func TestDifferencesAreMismatches(t *testing.T) {
	for _, c := range []struct{ name, replace, by, want string }{
		{"byte", "< 03 04", "< 03 05", "event 2, connection 1, expected from the target: byte 1 of 2 to be 0x04, got 0x05"},
		{"too short", "< 03 04", "< 03", "event 2, connection 1, expected from the target: 2 bytes, got 1: unexpected EOF"},
		{"too long", "< 03 04", "< 03 04 05", "event 3, connection 1, expected from the target: the end of the connection, got byte 0x05"},
		{"closed early", "1 < 03 04\n", "", "event 2, connection 1, expected from the target: 2 bytes, got 0: EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs := parse(t, strings.Replace(exchange, c.replace, c.by, 1))
			err, _ := playBoth(t, parse(t, exchange), theirs, Player{})
			var mismatch *Mismatch
			if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a *Mismatch with %q", err, c.want)
			}
		})
	}
}

func TestResetIsAsGoodAsEOF(t *testing.T) {
	theirs := parse(t, strings.Replace(exchange, "1 < eof\n1 > eof\n", "1 < reset\n", 1))
	if err, _ := playBoth(t, parse(t, exchange), theirs, Player{}); err != nil {
		t.Error(err)
	}
}

func TestPlayedResetIsAReset(t *testing.T) {
	dial, accept := ports(t)
	played := make(chan error, 1)
	go func() {
		p := Player{Role: Target, Connect: accept}
		played <- p.Play(parse(t, "moonpath-transcript 1\n1 open data\n1 > 01\n1 < reset\n"))
	}()
	conn, err := dial(Data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read = %d, %v, want a reset", n, err)
	}
	if err := <-played; err != nil {
		t.Error(err)
	}
}

func TestNobodyToConnectToIsAMismatch(t *testing.T) {
	refused := errors.New("refused")
	p := Player{Connect: func(Port) (net.Conn, error) { return nil, refused }}
	if err := p.Play(parse(t, exchange)); !errors.Is(err, refused) {
		t.Errorf("error %v, want the dialler's", err)
	}
}

func TestFrameSeesWholeControlFrames(t *testing.T) {
	const ask = "moonpath-transcript 1\n1 open control\n1 > rest64 01 `{}`\n1 < rest64 01 `null`\n1 < eof\n1 > eof\n"
	longer := strings.Replace(ask, "`null`", "`{\"a\":1}`", 1)
	for _, c := range []struct {
		name, problem string
		returns       func(recorded, got []byte) []byte
	}{
		{"recorded", "", func(recorded, _ []byte) []byte { return recorded }},
		{"another length", "13 bytes", func(_, got []byte) []byte { return got }},
		{"another byte", "byte 12 of 13 to be 0x6c, got 0x6d", func(recorded, _ []byte) []byte { return append(recorded[:12:12], 'm') }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen string
			frame := func(recorded, got []byte) []byte {
				seen = string(recorded[8:]) + " " + string(got[8:])
				return c.returns(recorded, got)
			}
			err, _ := playBoth(t, parse(t, ask), parse(t, longer), Player{Frame: frame})
			if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v, want %q", err, c.problem)
			}
			if want := "\x01null \x01{\"a\":1}"; seen != want {
				t.Errorf("Frame was given %q, want %q", seen, want)
			}
		})
	}
}

func TestFrameLengthIsCheckedBeforeReading(t *testing.T) {
	const ask = "moonpath-transcript 1\n1 open control\n1 > 01\n1 < rest64 01\n"
	huge := strings.Replace(ask, "rest64 01", "ff ff ff ff ff ff ff ff 01", 1)
	frame := func(recorded, _ []byte) []byte { return recorded }
	err, _ := playBoth(t, parse(t, ask), parse(t, huge), Player{Frame: frame})
	if err == nil || !strings.Contains(err.Error(), "frame of 18446744073709551615 bytes") {
		t.Errorf("error %v, want a refusal of the length", err)
	}
}
