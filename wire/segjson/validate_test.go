package segjson

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestValidateRefusesWhatNobodyCouldRead(t *testing.T) {
	many := make([]string, MaxExtensionProtocols+1)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	for name, test := range map[string]struct {
		spoil func(d *Descriptor)
		field string
	}{
		"no name":            {func(d *Descriptor) { d.Name = "" }, "name"},
		"no protocol":        {func(d *Descriptor) { d.Protocols = nil }, "protocols"},
		"empty protocol":     {func(d *Descriptor) { d.Protocols = []string{""} }, "protocols[0]"},
		"joined protocols":   {func(d *Descriptor) { d.Protocols = []string{"tcp,rdma"} }, "protocols[0]"},
		"no version":         {func(d *Descriptor) { d.TCPProtoVersion = 0 }, "tcp_proto_version"},
		"too many buffers":   {func(d *Descriptor) { d.Buffers = slices.Repeat(d.Buffers[:1], MaxBuffers+1) }, "buffers"},
		"address 0":          {func(d *Descriptor) { d.Buffers[2].Addr = 0 }, "buffers[2].addr"},
		"length 0":           {func(d *Descriptor) { d.Buffers[1].Length = 0 }, "buffers[1].length"},
		"no buffer name":     {func(d *Descriptor) { d.Buffers[0].Name = "" }, "buffers[0].name"},
		"range that wraps":   {func(d *Descriptor) { d.Buffers[0].Length = math.MaxUint64 - 4095 }, "buffers[0].length"},
		"longest length":     {func(d *Descriptor) { d.Buffers[0].Length = math.MaxUint64 }, "buffers[0].length"},
		"min 0":              {func(d *Descriptor) { d.Moonpath.Min = 0 }, "moonpath.min"},
		"min above schema":   {func(d *Descriptor) { d.Moonpath.Min = 2 }, "moonpath.min"},
		"no incarnation":     {func(d *Descriptor) { d.Moonpath.Incarnation = 0 }, "moonpath.incarnation"},
		"host":               {func(d *Descriptor) { d.Moonpath.Host = "localhost" }, "moonpath.host"},
		"no protocols":       {func(d *Descriptor) { d.Moonpath.Protocols = nil }, "moonpath.protocols"},
		"repeated protocol":  {func(d *Descriptor) { d.Moonpath.Protocols[1] = "tcp" }, "moonpath.protocols[1]"},
		"too many protocols": {func(d *Descriptor) { d.Moonpath.Protocols = many }, "moonpath.protocols"},
		"count 0":            {func(d *Descriptor) { d.Moonpath.Runs[0].Count = 0 }, "moonpath.buffers[0]"},
		"run beyond the end": {func(d *Descriptor) { d.Moonpath.Runs[1].Count = 2 }, "moonpath.buffers[1]"},
		"runs too short":     {func(d *Descriptor) { d.Moonpath.Runs = d.Moonpath.Runs[:1] }, "moonpath.buffers"},
		"unknown bit":        {func(d *Descriptor) { d.Moonpath.Runs[1].Mask = 4 }, "moonpath.buffers[1]"},
	} {
		d := documented()
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		test.spoil(d)
		err := d.Validate()
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != test.field || e.Want == "" || e.Have == "" {
			t.Errorf("%s: got %v, want a FieldError about %s", name, err, test.field)
		}
	}
}
