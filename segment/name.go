package segment

import (
	"net/netip"
	"strconv"
	"strings"
)

// SplitName takes a segment name of the peer-to-peer form apart: "host:port", "[v6]:port", a bare IPv6
// literal, or a host alone. port is 0 where the name has none or an unusable one (wire spec, section 1.8).
func SplitName(name string) (host string, port uint16) {
	if strings.HasPrefix(name, "[") {
		end := strings.IndexByte(name, ']')
		if end < 0 {
			return name, 0
		}
		rest, _ := strings.CutPrefix(name[end+1:], ":")
		return name[1:end], parsePort(rest)
	}
	if a, err := netip.ParseAddr(name); err == nil && a.Is6() && a.Zone() == "" {
		return name, 0
	}
	if percent := strings.IndexByte(name, '%'); percent >= 0 {
		if colon := strings.IndexByte(name[percent:], ':'); colon >= 0 {
			return name[:percent+colon], parsePort(name[percent+colon+1:])
		}
		return name, 0
	}
	colon := strings.LastIndexByte(name, ':')
	if colon < 0 {
		return name, 0
	}
	return name[:colon], parsePort(name[colon+1:])
}

func parsePort(text string) uint16 {
	p, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(p)
}

// JoinName builds a segment name; IPv6 hosts are put in brackets.
func JoinName(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}
