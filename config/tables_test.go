package config

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultsAreThoseOfTheReference pins what both programs do with no variable set.
func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	v, _ := mustResolve(t, slices.Concat(Engine, TCP), nil)
	got := map[string]string{}
	for _, r := range v.All() {
		got[r.Key] = r.Value
	}
	want := map[string]string{
		"control.port_default":     "12001",
		"control.backlog":          "128",
		"control.connect_timeout":  "5s",
		"control.max_frame":        "1MiB",
		"port.min":                 "15000",
		"port.max":                 "17000",
		"segment.cache_off":        "false",
		"segment.refresh_interval": "0s",
		"net.ipv6":                 "false",
		"transport.force_tcp":      "false",
		"transfer.timeout":         "30s",
		"log.level":                "INFO",
		"tcp.lanes":                "4",
		"tcp.max_queued":           "65536", // the reference has 1024 and fails above
		"tcp.protocol":             "2",
		"tcp.status_timeout":       "30s",
		"tcp.progress_timeout":     "30s",
		"tcp.silence_timeout":      "4s",   // the reference has none
		"tcp.connect_timeout":      "5s",   // the reference has none
		"tcp.max_inbound":          "1024", // the reference has none
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestVariablesReachTheirSettings sets each variable to what it may hold in a deployment.
func TestVariablesReachTheirSettings(t *testing.T) {
	for _, c := range []struct{ env, text, key, want string }{
		{"MC_HANDSHAKE_PORT", "13001", "control.port_default", "13001"},
		{"MC_HANDSHAKE_LISTEN_BACKLOG", "512", "control.backlog", "512"},
		{"MC_HANDSHAKE_CONNECT_TIMEOUT", "3599", "control.connect_timeout", "59m59s"},
		{"MC_HANDSHAKE_CONNECT_TIMEOUT", "3600", "control.connect_timeout", "5s"},
		{"MC_HANDSHAKE_MAX_LENGTH", "16777216", "control.max_frame", "16MiB"},
		{"MC_MIN_RPC_PORT", "15500", "port.min", "15500"},
		{"MC_MIN_PRC_PORT", "15500", "port.min", "15500"},
		{"MC_MAX_RPC_PORT", "16500", "port.max", "16500"},
		{"MC_MAX_PRC_PORT", "16500", "port.max", "16500"},
		{"MC_DISABLE_METACACHE", "0", "segment.cache_off", "true"},
		{"MC_TE_METADATA_REFRESH_INTERVAL_SECONDS", "60", "segment.refresh_interval", "1m0s"},
		{"MC_TE_METADATA_REFRESH_INTERVAL_SECONDS", "60x", "segment.refresh_interval", "1m0s"},
		{"MC_TE_METADATA_REFRESH_INTERVAL_SECONDS", "-1", "segment.refresh_interval", "0s"},
		{"MC_USE_IPV6", "", "net.ipv6", "true"},
		{"MC_FORCE_TCP", "false", "transport.force_tcp", "true"},
		{"MC_TRANSFER_TIMEOUT", "60", "transfer.timeout", "1m0s"},
		{"MC_TRANSFER_TIMEOUT", "1", "transfer.timeout", "5s"},
		{"MC_LOG_LEVEL", "TRACE", "log.level", "TRACE"},
		{"MC_LOG_LEVEL", "debug", "log.level", "INFO"},
		{"MC_TCP_LANES_PER_PEER", "16", "tcp.lanes", "16"},
		{"MC_TCP_MAX_CONNECTIONS_PER_PEER", "2", "tcp.lanes", "2"},
		{"MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER", "65535", "tcp.max_queued", "65535"},
		{"MC_TCP_PROTO", "1", "tcp.protocol", "1"},
		{"MC_TCP_PROTO", "1x", "tcp.protocol", "2"},
		{"MC_TCP_STATUS_TIMEOUT_SEC", "7", "tcp.status_timeout", "7s"},
		{"MC_TCP_PROGRESS_TIMEOUT_SEC", "0", "tcp.progress_timeout", "30s"},
		{"MC_TCP_PROGRESS_TIMEOUT_SEC", "9", "tcp.progress_timeout", "9s"},
	} {
		v, _ := mustResolve(t, slices.Concat(Engine, TCP), map[string]string{c.env: c.text})
		for _, r := range v.All() {
			if r.Key == c.key && r.Value != c.want {
				t.Errorf("%s=%s: %s is %s, want %s", c.env, c.text, r.Key, r.Value, c.want)
			}
		}
	}
}
