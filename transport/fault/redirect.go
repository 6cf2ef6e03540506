package fault

import (
	"context"
	"net"

	"github.com/moonpath-io/moonpath/segment"
)

// Via returns a copy of a description whose TCP data port is that of a proxy.
func Via(d *segment.Desc, to *net.TCPAddr) *segment.Desc {
	changed := *d
	changed.TCP.Host, changed.TCP.Port = to.IP.String(), uint16(to.Port)
	return &changed
}

// Redirect returns dir so that the descriptions which it looks up lead to proxies. via returns the address of the proxy
// for a segment, or nil to leave that one as it is; it is called at each look-up.
func Redirect(dir segment.Directory, via func(name string, d *segment.Desc) *net.TCPAddr) segment.Directory {
	return &redirected{dir, via}
}

type redirected struct {
	segment.Directory
	via func(string, *segment.Desc) *net.TCPAddr
}

// Lookup implements segment.Directory.
func (r *redirected) Lookup(ctx context.Context, name string) (*segment.Desc, error) {
	d, err := r.Directory.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	if to := r.via(name, d); to != nil {
		return Via(d, to), nil
	}
	return d, nil
}
