package config

// compatEngine covers control plane, metadata and engine.
var compatEngine = []CompatRow{
	{"MC_HANDSHAKE_PORT", Honoured, "default port of a segment name without one", "control.port_default"},
	{"MC_HANDSHAKE_LISTEN_BACKLOG", Honoured, "listen backlog of the control port", "control.backlog"},
	{"MC_HANDSHAKE_CONNECT_TIMEOUT", Honoured, "connecting to a control port", "control.connect_timeout"},
	{"MC_HANDSHAKE_MAX_LENGTH", Honoured, "largest control frame that is read", "control.max_frame"},
	{"MC_MIN_RPC_PORT", Honoured, "lower bound of listener ports; a bad pair falls back as a whole", portMin},
	{"MC_MIN_PRC_PORT", Honoured, "old name of MC_MIN_RPC_PORT, with a warning", portMin},
	{"MC_MAX_RPC_PORT", Honoured, "upper bound of listener ports; a bad pair falls back as a whole", portMax},
	{"MC_MAX_PRC_PORT", Honoured, "old name of MC_MAX_RPC_PORT, with a warning", portMax},
	{"MC_DISABLE_METACACHE", Honoured, "any value: descriptors are fetched anew at every use", "segment.cache_off"},
	{"MC_TE_METADATA_REFRESH_INTERVAL_SECONDS", Honoured, "periodic refresh of cached descriptors, 0 is off", "segment.refresh_interval"},
	{"MC_USE_IPV6", Honoured, "any value: control plane over IPv6", "net.ipv6"},
	{"MC_FORCE_TCP", Honoured, "any value: tcp only", "transport.force_tcp"},
	{"MC_TRANSFER_TIMEOUT", Honoured, "longest wait of the synchronous verbs; less than 5 s counts as 5 s", "transfer.timeout"},
	{"MC_LOG_LEVEL", HonouredDifferently, "level of moonpath's own log, not of the whole process; anything but the four names is warned about", "log.level"},
}

// compatTCP covers the TCP transport.
var compatTCP = []CompatRow{
	{"MC_TCP_LANES_PER_PEER", HonouredDifferently, "most connections to one peer; requests are pipelined on each", "tcp.lanes"},
	{"MC_TCP_MAX_CONNECTIONS_PER_PEER", HonouredDifferently, "old name of MC_TCP_LANES_PER_PEER, with a warning", "tcp.lanes"},
	{"MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER", HonouredDifferently, "tasks queued for one peer before Submit waits, where the reference fails; default 65536 instead of 1024", "tcp.max_queued"},
	{"MC_TCP_PROTO", HonouredDifferently, "1 forces version 1 as initiator; anything but 1 or 2 is warned about", "tcp.protocol"},
	{"MC_TCP_STATUS_TIMEOUT_SEC", Honoured, "longest wait for the status of a request", "tcp.status_timeout"},
	{"MC_TCP_PROGRESS_TIMEOUT_SEC", HonouredDifferently, "longest pause of a payload under way, where the reference measures each socket call", "tcp.progress_timeout"},
	{"MC_TCP_ENABLE_CONNECTION_POOL", Ignored, "connections to a peer are always kept and shared", ""},
	{"MC_TCP_MAX_PENDING_ADMISSIONS_PER_PEER", Ignored, "Submit waits for room in the queue, bounded by its context", ""},
	{"MC_TCP_ADMISSION_TIMEOUT_MS", Ignored, "Submit waits for room in the queue, bounded by its context", ""},
	{"MC_TCP_SLICE_SIZE", Ignored, "socket calls are vectored and take as much as the socket has room for", ""},
	{"MC_TCP_MAX_QUEUED_BYTES_PER_PEER", Ignored, "read by version 0.3.14 only; the queue is bounded by tasks, and bytes wait in the caller's memory", ""},
	{"MC_NUM_TCP_IO_THREADS", Ignored, "read by version 0.3.14 only; goroutines follow peers and lanes", ""},
}
