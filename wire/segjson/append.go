package segjson

import (
	"strconv"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// Append writes d to dst as jsoncpp would: compact, keys in byte order, a
// newline at the end, which the HTTP form lacks. It checks nothing; call
// Validate once before publishing.
func Append(dst []byte, d *Descriptor) []byte {
	dst = append(dst, `{"buffers":[`...)
	for i := range d.Buffers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendBuffer(dst, &d.Buffers[i])
	}
	dst = append(dst, ']')
	if d.Moonpath != nil {
		dst = append(dst, `,"moonpath":`...)
		dst = appendExtension(dst, d.Moonpath)
	}
	dst = appendText(dst, `,"name":`, d.Name)
	protocol := ""
	if len(d.Protocols) > 0 {
		protocol = d.Protocols[0]
	}
	dst = appendText(dst, `,"protocol":`, protocol)
	dst = appendText(dst, `,"rdma_server_name":`, d.RDMAServerName)
	if d.TCPDataHost != "" {
		dst = appendText(dst, `,"tcp_data_host":`, d.TCPDataHost)
	}
	dst = append(dst, `,"tcp_data_port":`...)
	dst = strconv.AppendUint(dst, uint64(d.TCPDataPort), 10)
	dst = append(dst, `,"tcp_proto_version":`...)
	dst = strconv.AppendInt(dst, int64(d.TCPProtoVersion), 10)
	dst = appendText(dst, `,"timestamp":`, d.Timestamp)
	return append(dst, '}', '\n')
}

func appendBuffer(dst []byte, b *Buffer) []byte {
	dst = append(dst, `{"addr":`...)
	dst = strconv.AppendUint(dst, b.Addr, 10)
	dst = append(dst, `,"length":`...)
	dst = strconv.AppendUint(dst, b.Length, 10)
	dst = appendText(dst, `,"name":`, b.Name)
	if b.Protocol != "" {
		dst = appendText(dst, `,"protocol":`, b.Protocol)
	}
	return append(dst, '}')
}

func appendExtension(dst []byte, e *Extension) []byte {
	dst = append(dst, `{"buffers":[`...)
	for i, run := range e.Runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = strconv.AppendInt(dst, int64(run.Count), 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, run.Mask, 10)
		dst = append(dst, ']')
	}
	dst = append(dst, ']')
	if e.Host != "" {
		dst = appendText(dst, `,"host":`, e.Host)
	}
	dst = append(dst, `,"incarnation":"`...)
	dst = appendHex(dst, e.Incarnation)
	dst = append(dst, `","min":`...)
	dst = strconv.AppendInt(dst, int64(e.Min), 10)
	dst = append(dst, `,"protocols":[`...)
	for i, p := range e.Protocols {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsoncpp.AppendString(dst, p)
	}
	dst = append(dst, `],"schema":`...)
	dst = strconv.AppendInt(dst, int64(e.Schema), 10)
	if e.HelloVersion > 0 {
		dst = append(dst, `,"tcp":{"hello":`...)
		dst = strconv.AppendInt(dst, int64(e.HelloVersion), 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendText(dst []byte, key, text string) []byte {
	return jsoncpp.AppendString(append(dst, key...), text)
}

func appendHex(dst []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&15])
	}
	return dst
}
