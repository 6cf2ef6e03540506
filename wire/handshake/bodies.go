package handshake

// AppendMetadataRequest appends the smallest request for a descriptor. Published
// initiators send their own descriptor instead, which no responder looks at.
func AppendMetadataRequest(dst []byte) []byte { return append(dst, "{}\n"...) }

// AppendNoDescriptor appends the reply of an engine that has no descriptor to
// give, and of one that does not serve a type of message.
func AppendNoDescriptor(dst []byte) []byte { return append(dst, "null\n"...) }

// AppendProbeRequest appends the question whether a peer is alive. Any reply
// that is valid JSON says yes.
func AppendProbeRequest(dst []byte) []byte { return append(dst, "{}\n"...) }

// AppendProbeReply appends the answer to a probe.
func AppendProbeReply(dst []byte) []byte { return append(dst, `{"status":"success"}`+"\n"...) }

// AppendConnectionReply appends the answer of an engine without RDMA to any
// connection message: all fields at their defaults, and no error.
func AppendConnectionReply(dst []byte) []byte {
	return append(dst, `{"local_gid":"","local_lid":0,"local_nic_path":"","payload":"",`+
		`"peer_nic_path":"","qp_num":[],"reply_msg":""}`+"\n"...)
}
