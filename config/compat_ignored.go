package config

import "slices"

// compatIgnored covers what moonpath will not read, apart from the TCP names.
var compatIgnored = slices.Concat(
	ignored("moonpath writes its log where its caller says, the tool to standard error",
		"MC_LOG_DIR"),
	ignored("moonpath prints no periodic figures; its counters are read on demand",
		"MC_TE_METRIC", "MC_TE_METRIC_INTERVAL_SECONDS"),
	ignored("read by version 0.3.14 only, whose queue of notifications it bounds",
		"MC_HANDSHAKE_MAX_NOTIFY_ENTRIES"),
	ignored("it does nothing in the reference, either",
		"MC_ENABLE_SHM"),
	ignored("it belongs to the reference's other engine, whose protocol moonpath does not speak",
		"MC_USE_TENT", "MC_USE_TEV1", "MC_TENT_CONF", "MC_TENT_RPC_THREADS", "MC_TE_FILTERS_EXCLUDE",
		"MC_DISABLE_GPU_DIRECT_RDMA", "MC_ENABLE_MNNVL", "MC_TPU_PJRT_LIB"),
	ignored("it belongs to the reference's RPC communicator, which moonpath does not have",
		"MC_TE_RPC_CLIENT_IO_THREADS"),
	ignored("barex needs a library of its vendor, which moonpath does not use",
		"MC_MIN_REG_SIZE"),
	ignored("cxl memory is not supported",
		"MC_CXL_DEV_PATH", "MC_CXL_DEV_SIZE"),
	ignored("the transports of this vendor are not supported",
		"MC_USE_UBSHMEM_IPC", "MC_UBSHMEM_STREAMS_PER_TRANSFER", "MC_UBSHMEM_MAX_STREAMS",
		"MC_UBSHMEM_THREAD_POOL_SIZE", "MC_UBSHMEM_GET_STREAM_TIMEOUT",
		"MC_TANGRT_ROOT", "MC_TANGRT_LIB_DIR", "MC_TANGRT_LIB_ARCH"),
	ignored("storage over NVMe fabrics is not supported",
		"MC_NOF_TRTYPE", "MC_NOF_DEBUG", "MC_NOF_DEBUG_INTERVAL_MS", "MC_NOF_INFLIGHT_BYTES_LIMIT",
		"MC_NOF_SUBMIT_CHUNK_BYTES", "MC_NOF_WORKERS",
		"MC_NVME_ADMIN_QUEUE_SIZE", "MC_NVME_DATA_DIGEST", "MC_NVME_FABRICS_CONNECT_TIMEOUT_US",
		"MC_NVME_HEADER_DIGEST", "MC_NVME_IO_QUEUE_REQUESTS", "MC_NVME_IO_QUEUE_SIZE", "MC_NVME_NUM_IO_QUEUES",
		"MC_NVME_TRANSPORT_ACK_TIMEOUT"),
	ignored("only tests, benchmarks and examples of the reference read it",
		"MC_BENCH_PROMOTION_LATENCY", "MC_INITIATOR_DEVICE_NAME", "MC_INITIATOR_SERVER_NAME", "MC_LOCAL_SERVER_NAME",
		"MC_MASTER_ADDR", "MC_METADATA_SERVER", "MC_TARGET_DEVICE_NAME", "MC_TARGET_SERVER_NAME",
		"MC_RUST_BENCH_ITERATIONS", "MC_RUST_BENCH_VALUE_SIZE", "MC_RUST_BENCH_WARMUP", "MC_RUST_STORE_DEVICE_NAME",
		"MC_RUST_STORE_GLOBAL_SEGMENT_SIZE", "MC_RUST_STORE_LOCAL_BUFFER_SIZE", "MC_RUST_STORE_LOCAL_HOSTNAME",
		"MC_RUST_STORE_MASTER_ADDR", "MC_RUST_STORE_PROTOCOL", "MC_RUST_STORE_RUN_INTEGRATION",
		"MC_RUST_TE_LOCAL_HOSTNAME", "MC_RUST_TE_PROTOCOL", "MC_RUST_TE_RUN_INTEGRATION",
		"MC_TEST_BOOL", "MC_TEST_DEVICE_NAME", "MC_TEST_DOUBLE", "MC_TEST_INT", "MC_TEST_INT64", "MC_TEST_LOCAL_IP",
		"MC_TEST_SIZET", "MC_TEST_STRING", "MC_TEST_UINT32", "MC_TEST_UINT64"),
)

func ignored(why string, names ...string) []CompatRow { return rows(Ignored, why, names) }
