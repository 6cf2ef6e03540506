package transporttest

import (
	"reflect"
	"strings"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
)

var identity = []testCase{
	{name: "name", demands: "Name is one word without upper case that never changes: descriptions, pins and settings carry it",
		run: func(x *rig) {
			name := x.pair.Initiator.Transport.Name()
			if name == "" || strings.ToLower(name) != name || len(strings.Fields(name)) != 1 {
				x.fail("the name is %q", name)
			}
			if again, there := x.pair.Initiator.Transport.Name(), x.pair.Target.Transport.Name(); again != name || there != name {
				x.fail("it was %q, then %q, and %q at the target", name, again, there)
			}
		}},
	{name: "offers are stable", demands: "the rows of Offers depend on the description alone until Env.Changed is called",
		run: func(x *rig) {
			t := x.pair.Initiator.Transport
			first := t.Offers(x.peer.Desc(), nil)
			x.dial().do(x.task(both[0], 100))
			if second := t.Offers(x.peer.Desc(), nil); !reflect.DeepEqual(first, second) {
				x.fail("first\n%+v\nand after a transfer\n%+v", first, second)
			}
		}},
	{name: "offers are appended", demands: "Offers appends to what it is given, and leaves that and the description alone",
		run: func(x *rig) {
			t, before := x.pair.Initiator.Transport, x.describe()
			given := []transport.Offer{{Rail: "somebody else's"}}
			got := t.Offers(x.peer.Desc(), given)
			if len(got) < 2 || got[0].Rail != given[0].Rail || !reflect.DeepEqual(got[1:], t.Offers(x.peer.Desc(), nil)) {
				x.fail("behind one row that was there it became\n%+v", got)
			}
			if !reflect.DeepEqual(x.peer.Desc(), before) {
				x.fail("the description was\n%+v\nand is\n%+v", before, x.peer.Desc())
			}
		}},
	{name: "describe", demands: "Describe adds the transport's part: its name at most once, nothing about whose segment it is or where its buffers lie",
		run: func(x *rig) {
			d, draft := x.describe(), x.pair.Target.Draft
			if d.Name != draft.Name || d.TCP.Host != draft.TCP.Host || len(d.Buffers) != 1 || d.Buffers[0].Addr != uint64(x.far.region.Addr) || d.Buffers[0].Len != x.far.region.Len {
				x.fail("the description became %+v, of the draft %+v and one buffer", d, draft)
			}
			if (d.Ext == nil) != (draft.Ext == nil) || d.Ext != nil && (d.Ext.Incarnation != draft.Ext.Incarnation || d.Ext.Host != draft.Ext.Host) {
				x.fail("the incarnation became %+v, of %+v", d.Ext, draft.Ext)
			}
			name := x.pair.Target.Transport.Name()
			if n := count(d.Protocols, name); n > 1 || n != count(d.Buffers[0].Protocols, name) {
				x.fail("%q is listed for the segment as %q and for its buffer as %q", name, d.Protocols, d.Buffers[0].Protocols)
			}
		}},
	{name: "describe again", demands: "each publication gives the same description while nothing has changed",
		run: func(x *rig) {
			if first, second := x.describe(), x.describe(); !reflect.DeepEqual(first, second) {
				x.fail("first\n%+v\nthen\n%+v", first, second)
			}
		}},
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

var honesty = []testCase{
	{name: "usable works", demands: "an offer without Refused works, for each operation that it lists",
		run: func(x *rig) {
			s := x.dial()
			for _, op := range x.ops() {
				s.do(x.task(op, 1), x.task(op, 100_000))
			}
		}},
	{name: "refused says why", demands: "a target that cannot be reached gets at least one row, and each is refused with code, what was wanted and what was found",
		run: func(x *rig) {
			offers := x.pair.Initiator.Transport.Offers(&segment.Desc{Name: "stranger"}, nil)
			if len(offers) == 0 {
				x.fail("there is no row towards a segment that offers nothing")
			}
			for _, o := range offers {
				if len(o.Refused) == 0 {
					x.fail("the row %+v says that a segment can be reached which offers nothing", o)
				}
				for _, r := range o.Refused {
					if r.Code == "" || r.Want == "" || r.Have == "" {
						x.fail("the reason has code %q, want %q, have %q", r.Code, r.Want, r.Have)
					}
				}
			}
		}},
	{name: "cost", demands: "a usable row serves some kind of memory, and its cost is above 0, grows with the size and says where it comes from",
		run: func(x *rig) {
			for _, o := range x.pair.Initiator.Transport.Offers(x.peer.Desc(), nil) {
				if len(o.Refused) > 0 {
					continue
				}
				if len(o.Local) == 0 || o.Cost.Of(1) <= 0 || o.Cost.Of(1<<30) <= o.Cost.Of(1) {
					x.fail("the row is %+v", o)
				}
				switch o.Cost.Origin {
				case "declared", "probed", "measured":
				default:
					x.fail("the origin of the cost is %q; there are declared, probed and measured", o.Cost.Origin)
				}
			}
		}},
}
