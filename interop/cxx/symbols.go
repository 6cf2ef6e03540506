package cxx

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"

	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// The symbols of a recording besides its regions.
const (
	nameSymbol     = "NAME"
	dataPortSymbol = "DATA_PORT"
)

const (
	// headerSize is that of a request on a data connection (wire spec, section 4.2).
	headerSize = 24
	// beside is how far off a region an address still belongs to it: tests of rejected addresses are that close.
	beside = 4096
)

// symbols turns recorded bytes into items.
type symbols struct {
	target  targetPorts
	regions []transcript.Region
	sources []source
}

func newSymbols(target targetPorts, regions []transcript.Region, seeds []uint64, events []rawEvent) *symbols {
	longest := 0
	for _, r := range regions {
		longest = max(longest, int(r.Length))
	}
	for _, e := range events {
		longest = max(longest, len(e.bytes))
	}
	s := &symbols{target: target, regions: regions}
	for _, seed := range seeds {
		s.sources = append(s.sources, source{seed, pattern.Bytes(seed, longest)})
	}
	for _, r := range regions {
		s.sources = append(s.sources, source{r.Seed, pattern.Bytes(r.Seed, int(r.Length))})
	}
	return s
}

func (s *symbols) events(raw []rawEvent) []transcript.Event {
	var out []transcript.Event
	ports := map[int]transcript.Port{}
	for _, e := range joinRequests(raw) {
		event := transcript.Event{Conn: e.conn, Kind: e.kind, Port: e.port, From: e.from}
		if e.kind == transcript.Opened {
			ports[e.conn] = e.port
		}
		if e.kind != transcript.Sent {
			out = append(out, event)
			continue
		}
		for _, m := range s.messages(ports[e.conn], e.from, e.bytes) {
			event.Message = m
			out = append(out, event)
		}
	}
	return out
}

func (s *symbols) messages(port transcript.Port, from transcript.Role, b []byte) []transcript.Message {
	switch {
	case port == transcript.Control:
		return []transcript.Message{s.frame(b)}
	case from == transcript.Target:
		return []transcript.Message{s.payload(b)}
	}
	var requests []transcript.Message
	for len(b) > 0 {
		var m transcript.Message
		m, b = s.request(b)
		requests = append(requests, m)
	}
	return requests
}

// frame is a control frame: length, type unless it is one of the old protocol, JSON.
func (s *symbols) frame(b []byte) transcript.Message {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) != uint64(len(b)-8) {
		return s.payload(b)
	}
	m, b := transcript.Message{transcript.Rest64()}, b[8:]
	if len(b) > 0 && b[0] != '{' {
		m, b = append(m, transcript.Hex(b[:1])), b[1:]
	}
	text, newline := strings.CutSuffix(string(b), "\n")
	m = append(m, s.json(text)...)
	if newline {
		m = append(m, transcript.Hex([]byte{'\n'}))
	}
	return m
}

// json is text in which the target's name, data port and region addresses are symbols.
func (s *symbols) json(text string) transcript.Message {
	for _, v := range s.jsonValues() {
		if before, after, ok := strings.Cut(text, v.before+v.value+v.after); ok {
			m := append(s.json(before+v.before), v.item)
			return append(m, s.json(v.after+after)...)
		}
	}
	switch {
	case text == "":
		return nil
	case transcript.IsText(text):
		return passing(text)
	default:
		return transcript.Message{transcript.Hex([]byte(text))}
	}
}

// ofThisRun finds, in what is left of a descriptor, values that the other side has no use for or that are new in every run:
// the initiator's descriptor in a Metadata request, and time stamps.
var ofThisRun = regexp.MustCompile(`"timestamp":"([^"]+)"|"tcp_data_port":(\d+)|"addr":(\d+)|"(127\.0\.0\.1:\d+)"`)

// passing is text with those values marked as such.
func passing(text string) (m transcript.Message) {
	at := 0
	for _, found := range ofThisRun.FindAllStringSubmatchIndex(text, -1) {
		for group := 2; group < len(found); group += 2 {
			if from, to := found[group], found[group+1]; from >= 0 {
				m = append(m, transcript.Text(text[at:from]), transcript.Any([]byte(text[from:to])))
				at = to
			}
		}
	}
	if at < len(text) {
		m = append(m, transcript.Text(text[at:]))
	}
	return m
}

// jsonValue is a value that stands for a symbol where it occurs between before and after.
type jsonValue struct {
	before, value, after string
	item                 transcript.Item
}

func (s *symbols) jsonValues() []jsonValue {
	values := []jsonValue{
		{`"`, s.target.Name, `"`, transcript.Str(nameSymbol)},
		{`"tcp_data_port":`, strconv.Itoa(s.target.DataPort), `,`, transcript.Dec(transcript.Ref{Symbol: dataPortSymbol})},
	}
	for _, r := range s.regions {
		addr := strconv.FormatUint(r.Addr, 10)
		values = append(values, jsonValue{`"addr":`, addr, `,`, transcript.Dec(transcript.Ref{Symbol: r.Name})})
	}
	return values
}

// request is the first request of b, header and payload, and what follows it.
func (s *symbols) request(b []byte) (m transcript.Message, after []byte) {
	if len(b) < headerSize {
		return s.payload(b), nil
	}
	size, addr := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if place, ok := s.place(addr); ok {
		m = transcript.Message{transcript.Hex(b[:8]), transcript.U64(place), transcript.Hex(b[16:17])}
	} else {
		m = transcript.Message{transcript.Hex(b[:17])}
	}
	m = append(m, transcript.Any(b[17:headerSize])) // padding
	end := uint64(headerSize)
	if carriesPayload(b) {
		end += min(size, uint64(len(b)-headerSize)) // less than size if the connection ended in between
	}
	return append(m, s.payload(b[headerSize:end])...), b[end:]
}

func carriesPayload(header []byte) bool { return header[16]&0x7f == 1 }

// place names an address by the region that it lies in or beside.
func (s *symbols) place(addr uint64) (transcript.Ref, bool) {
	for _, r := range s.regions {
		offset := int64(addr - r.Addr)
		if offset >= -beside && offset < int64(r.Length)+beside {
			return transcript.Ref{Symbol: r.Name, Offset: offset}, true
		}
	}
	return transcript.Ref{}, false
}
