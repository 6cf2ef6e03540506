package meta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// Parse reads a history in the form of History.String; steps may also stand on lines of their own.
func Parse(text string) (History, error) {
	var h History
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		part = strings.TrimSpace(part)
		var err error
		if seed, ok := strings.CutPrefix(part, "seed "); ok {
			h.Seed, err = strconv.ParseUint(seed, 10, 64)
		} else if part != "" {
			var s Step
			s, err = parseStep(part)
			h.Steps = append(h.Steps, s)
		}
		if err != nil {
			return History{}, fmt.Errorf("meta: part %d of the history, %q: %w", i+1, part, err)
		}
	}
	return h, nil
}

func parseStep(text string) (s Step, err error) {
	word, rest, _ := strings.Cut(text, " ")
	kind := slices.Index(kindNames[:], word)
	if kind < 0 {
		return s, fmt.Errorf("%q is no step; there are %s", word, strings.Join(kindNames[:], ", "))
	}
	s.Kind = Kind(kind)
	switch s.Kind {
	case Register, Unregister:
		var side string
		if _, err = fmt.Sscanf(rest, "%s %d", &side, &s.Slot); err == nil && side != "local" && side != "remote" {
			err = fmt.Errorf("side %q is neither local nor remote", side)
		}
		if side == "remote" {
			s.Side = Remote
		}
	case Wait, Cancel, CloseBatch:
		_, err = fmt.Sscanf(rest, "b%d", &s.Batch)
	case Submit:
		name, requests, _ := strings.Cut(rest, " ")
		if _, err = fmt.Sscanf(name, "b%d", &s.Batch); err == nil {
			s.Requests, err = parseRequests(requests)
		}
	case Do:
		words := strings.Fields(rest)
		if len(words) == requestWords+1 {
			if s.Limit, err = time.ParseDuration(words[requestWords]); err != nil {
				return s, err
			}
			rest = strings.Join(words[:requestWords], " ")
		}
		s.Requests, err = parseRequests(rest)
	case Pause:
		s.Limit, err = time.ParseDuration(rest)
	default:
		if rest != "" {
			err = fmt.Errorf("%q is too much", rest)
		}
	}
	return s, err
}

// requestWords is how many words one request has.
const requestWords = 4

func parseRequests(text string) (rs []Request, err error) {
	for _, part := range strings.Split(text, ",") {
		var r Request
		var op string
		if _, err := fmt.Sscanf(strings.TrimSpace(part), "%s L%d+%d R%d+%d %d", &op, &r.Local.Slot, &r.Local.Off, &r.Remote.Slot, &r.Remote.Off, &r.Len); err != nil {
			return nil, fmt.Errorf("%q is no request such as \"write L0+0 R1+4096 100\": %w", part, err)
		}
		switch op {
		case "read":
			r.Op = xfer.Read
		case "write":
			r.Op = xfer.Write
		default:
			return nil, fmt.Errorf("%q is neither read nor write", op)
		}
		rs = append(rs, r)
	}
	return rs, nil
}
