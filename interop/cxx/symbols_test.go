package cxx

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// testSymbols knows a target at 127.0.0.1:15001 with data port 15002 and 4 KiB of pattern 1 at 0x10000.
func testSymbols() *symbols {
	target := targetPorts{Name: "127.0.0.1:15001", DataPort: 15002}
	regions := []transcript.Region{{Name: "A", Addr: 0x10000, Length: 4096, Seed: 1}}
	return newSymbols(target, regions, []uint64{2}, nil)
}

func controlFrame(body string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(body)))) + body
}

func TestBytesBecomeItems(t *testing.T) {
	header := func(size, addr uint64, opcode byte) string { return string(dataHeader(size, addr, opcode)) }
	const pad = " any(00 00 00 00 00 00 00)"
	long := string(pattern.Bytes(2, 100))
	for _, c := range []struct {
		name  string
		port  transcript.Port
		from  transcript.Role
		bytes string
		want  []string
	}{
		{"frame", transcript.Control, transcript.Initiator, controlFrame("\x03{}\n"), []string{"rest64 03 `{}` 0a"}},
		{"old protocol", transcript.Control, transcript.Initiator, controlFrame("{}"), []string{"rest64 `{}`"}},
		{"frame without a body", transcript.Control, transcript.Initiator, controlFrame(""), []string{"rest64"}},
		{"wrong length", transcript.Control, transcript.Initiator, "\x09\x00\x00\x00\x00\x00\x00\x00\x01", []string{"09 00 00 00 00 00 00 00 01"}},
		{"too short for a length", transcript.Control, transcript.Initiator, "GET", []string{"47 45 54"}},
		{"text outside ASCII", transcript.Control, transcript.Target, controlFrame("\x02ü"), []string{"rest64 02 c3 bc"}},
		{
			"values of the target", transcript.Control, transcript.Target,
			controlFrame(`{"addr":65536,"name":"127.0.0.1:15001","tcp_data_port":15002,"timestamp":"2026-11-30 10:00:00.000001"}`),
			[]string{"rest64 `{\"addr\":` dec(A) `,\"name\":\"` str(NAME) `\",\"tcp_data_port\":` dec(DATA_PORT) `,\"timestamp\":\"` any(`2026-11-30 10:00:00.000001`) `\"}`"},
		},
		{
			"values of the initiator", transcript.Control, transcript.Initiator,
			controlFrame(`{"addr":65537,"name":"127.0.0.1:15003","tcp_data_port":15004}`),
			[]string{"rest64 `{\"addr\":` any(`65537`) `,\"name\":\"` any(`127.0.0.1:15003`) `\",\"tcp_data_port\":` any(`15004`) `}`"},
		},
		{
			"write and read", transcript.Data, transcript.Initiator,
			header(5, 0x10010, 0x81) + "hello" + header(5, 0x10000, 0x80),
			[]string{"05 00 00 00 00 00 00 00 u64(A+16) 81" + pad + " 68 65 6c 6c 6f", "05 00 00 00 00 00 00 00 u64(A) 80" + pad},
		},
		{
			"address beside the region", transcript.Data, transcript.Initiator,
			header(1, 0x10000-4096, 0x80) + header(1, 0x11000+4095, 0x80),
			[]string{"01 00 00 00 00 00 00 00 u64(A-4096) 80" + pad, "01 00 00 00 00 00 00 00 u64(A+8191) 80" + pad},
		},
		{
			"address elsewhere", transcript.Data, transcript.Initiator, header(1, 0x12000, 0x80),
			[]string{"01 00 00 00 00 00 00 00 00 20 01 00 00 00 00 00 80" + pad},
		},
		{
			"payload cut off, of absurd length", transcript.Data, transcript.Initiator, header(1<<64-1, 0x10000, 0x01) + "ab",
			[]string{"ff ff ff ff ff ff ff ff u64(A) 01" + pad + " 61 62"},
		},
		{"half a header", transcript.Data, transcript.Initiator, "\x01\x02", []string{"01 02"}},
		{
			"patterns among other bytes", transcript.Data, transcript.Target,
			statusOK + long[10:80] + "!" + string(pattern.Bytes(1, 4096)[100:200]),
			[]string{"00 00 00 00 56 54 43 4d pattern(2,10,80) 21 pattern(1,100,200)"},
		},
		{"short stretch of a pattern", transcript.Data, transcript.Target, long[:3], []string{transcript.Hex([]byte(long[:3])).String()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range testSymbols().messages(c.port, c.from, []byte(c.bytes)) {
				got = append(got, m.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestIsOneMessageDespiteEarlyAnswer(t *testing.T) {
	header := string(dataHeader(5, 0x10000, 0x81))
	sent := func(from transcript.Role, b string) rawEvent {
		return rawEvent{conn: 1, kind: transcript.Sent, from: from, bytes: []byte(b)}
	}
	opened := rawEvent{conn: 1, kind: transcript.Opened, port: transcript.Data}
	got := joinRequests([]rawEvent{
		opened,
		sent(transcript.Initiator, header+"he"),
		sent(transcript.Target, statusRejected),
		sent(transcript.Initiator, "l"),
		sent(transcript.Initiator, "lo"+header),
		sent(transcript.Initiator, "again"),
	})
	want := []rawEvent{
		opened,
		sent(transcript.Initiator, header+"hello"),
		sent(transcript.Target, statusRejected),
		sent(transcript.Initiator, header+"again"),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rawEvent{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
