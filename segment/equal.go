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
