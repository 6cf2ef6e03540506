package config

import "time"

// Engine is the table of the settings that belong to no single transport.
var Engine = []Setting{
	{
		Key: "control.port_default", Env: []string{"MC_HANDSHAKE_PORT"}, Kind: Int, Default: "12001",
		Min: 1, Max: 65535, Lenient: true,
		Help: "Control port of a segment name that carries none.",
	},
	{
		Key: "control.backlog", Env: []string{"MC_HANDSHAKE_LISTEN_BACKLOG"}, Kind: Int, Default: "128",
		Min: 1, Max: 1<<31 - 1, Lenient: true,
		Help: "Connections that may wait to be accepted at the control port.",
	},
	{
		Key: "control.connect_timeout", Env: []string{"MC_HANDSHAKE_CONNECT_TIMEOUT"}, Kind: Duration, Default: "5s",
		Min: int64(time.Millisecond), Max: int64(3599 * time.Second), Unit: time.Second, Lenient: true,
		Help: "Longest wait for a connection to a peer's control port.",
	},
	{
		Key: "control.max_frame", Env: []string{"MC_HANDSHAKE_MAX_LENGTH"}, Kind: Size, Default: "1MiB",
		Min: 1 << 20, Max: 128 << 20,
		Help: "Largest control frame that is read; raise it at the reader for peers with more than about 16,000 buffers.",
	},
	{
		Key: portMin, Env: []string{"MC_MIN_RPC_PORT", "MC_MIN_PRC_PORT"}, Kind: Int, Default: "15000",
		Lenient: true,
		Help:    "Lowest port that control and data listeners choose.",
	},
	{
		Key: portMax, Env: []string{"MC_MAX_RPC_PORT", "MC_MAX_PRC_PORT"}, Kind: Int, Default: "17000",
		Lenient: true,
		Help:    "Highest port that control and data listeners choose.",
	},
	{
		Key: "segment.cache_off", Env: []string{"MC_DISABLE_METACACHE"}, Kind: Presence, Default: "false",
		Help: "Fetch a peer's descriptor anew at every use.",
	},
	{
		Key: "segment.refresh_interval", Env: []string{"MC_TE_METADATA_REFRESH_INTERVAL_SECONDS"}, Kind: Duration, Default: "0s",
		Unit: time.Second, Lenient: true,
		Help: "Interval at which cached descriptors are fetched again; 0 switches it off.",
	},
	{
		Key: "net.ipv6", Env: []string{"MC_USE_IPV6"}, Kind: Presence, Default: "false",
		Help: "Control plane over IPv6.",
	},
	{
		Key: "transport.force_tcp", Env: []string{"MC_FORCE_TCP"}, Kind: Presence, Default: "false",
		Help: "Install tcp only, whatever else is ready.",
	},
	{
		Key: "transfer.timeout", Env: []string{"MC_TRANSFER_TIMEOUT"}, Kind: Duration, Default: "30s",
		Min: int64(time.Millisecond), Floor: int64(5 * time.Second), Unit: time.Second, Lenient: true,
		Help: "Longest time that a synchronous transfer waits for its end.",
	},
	{
		Key: "log.level", Env: []string{"MC_LOG_LEVEL"}, Kind: Enum, Default: "INFO",
		Choices: []string{"TRACE", "INFO", "WARNING", "ERROR"},
		Help:    "Least severe level that is logged.",
	},
}
