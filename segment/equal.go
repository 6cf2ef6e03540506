package segment

import "slices"

// equal compares everything but Gen; a description that is fetched again unchanged keeps its generation.
func (d *Desc) equal(e *Desc) bool {
	return d.Name == e.Name && d.TCP == e.TCP && slices.Equal(d.Protocols, e.Protocols) &&
		(d.Ext == nil) == (e.Ext == nil) && (d.Ext == nil || *d.Ext == *e.Ext) &&
		slices.EqualFunc(d.Buffers, e.Buffers, func(a, b Buffer) bool {
			return a.Addr == b.Addr && a.Len == b.Len && a.Location == b.Location && slices.Equal(a.Protocols, b.Protocols)
		})
}

// SameOwner reports whether two descriptions are of one life of one engine, as far as they can tell: by
// incarnation, else by the endpoint of the data plane. Addresses of one owner mean nothing to another.
func (d *Desc) SameOwner(e *Desc) bool {
	if d.Ext != nil && e.Ext != nil {
		return d.Ext.Incarnation == e.Ext.Incarnation
	}
	return (d.Ext == nil) == (e.Ext == nil) && d.TCP.Host == e.TCP.Host && d.TCP.Port == e.TCP.Port
}
