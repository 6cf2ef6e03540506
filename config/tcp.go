package config

import "time"

// TCP is the table of the TCP transport's settings.
var TCP = []Setting{
	{
		Key: "tcp.lanes", Env: []string{"MC_TCP_LANES_PER_PEER", "MC_TCP_MAX_CONNECTIONS_PER_PEER"}, Kind: Int, Default: "4",
		Min: 1, Max: 16,
		Help: "Most data connections to one peer.",
	},
	{
		Key: "tcp.max_queued", Env: []string{"MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER"}, Kind: Int, Default: "65536",
		Min: 1, Max: 1 << 20,
		Help: "Tasks queued for one peer before Submit waits for room.",
	},
	{
		Key: "tcp.protocol", Env: []string{"MC_TCP_PROTO"}, Kind: Enum, Default: "2",
		Choices: []string{"1", "2"},
		Help:    "Newest TCP protocol version used as initiator; 1 forces version 1 towards every peer.",
	},
	{
		Key: "tcp.status_timeout", Env: []string{"MC_TCP_STATUS_TIMEOUT_SEC"}, Kind: Duration, Default: "30s",
		Min: int64(time.Millisecond), Unit: time.Second, Lenient: true,
		Help: "Longest wait for a peer's status after a request was sent.",
	},
	{
		Key: "tcp.progress_timeout", Env: []string{"MC_TCP_PROGRESS_TIMEOUT_SEC"}, Kind: Duration, Default: "30s",
		Min: int64(time.Millisecond), Unit: time.Second, Lenient: true,
		Help: "Longest pause of a payload under way.",
	},
	{
		Key: "tcp.silence_timeout", Kind: Duration, Default: "4s",
		Max: int64(3599 * time.Second), Unit: time.Second,
		Help: "Longest pause if the peer's control port does not answer either; 0 asks nobody.",
	},
	{
		Key: "tcp.connect_timeout", Kind: Duration, Default: "5s",
		Min: int64(time.Millisecond), Max: int64(3599 * time.Second), Unit: time.Second,
		Help: "Longest wait for a data connection.",
	},
	{
		Key: "tcp.max_inbound", Kind: Int, Default: "1024",
		Min: 1, Max: 65535,
		Help: "Data connections from peers that are served at once; further ones are refused.",
	},
}
