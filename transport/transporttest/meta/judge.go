package meta

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/moonpath-io/moonpath/xfer"
)

// outcome is how a request ended.
type outcome struct {
	xfer.Status
	counted   bool // Status.Bytes is known
	cancelled bool // somebody asked for its end
}

// refusals are the codes of requests that were never begun.
var refusals = []xfer.Code{xfer.Refused, xfer.AddressNotRegistered, xfer.InvalidArgument, xfer.NotSupportedTransport}

// untouched reports whether nothing can have moved.
func (o *outcome) untouched() bool {
	if !o.counted || o.Bytes > 0 {
		return false
	}
	for _, c := range refusals {
		if errors.Is(o.Err, c) {
			return true
		}
	}
	return false
}

// judge checks how a request ended, tells the model, and fills its buffer anew: it belongs to the caller again.
func (r *runner) judge(o *op, out outcome) error {
	if err := r.plausible(o, &out); err != nil {
		return err
	}
	buffer := r.Memory(Local, o.Local.Slot)[o.local.lo:o.local.hi]
	got, shadow := r.read(buffer), r.shadow[o.Local.Slot][o.local.lo:o.local.hi]
	if o.Op == xfer.Read {
		r.model.end(o.read)
		if err := o.brought(&out, got, r.shape.LooseReads); err != nil {
			return err
		}
	} else {
		if !bytes.Equal(got, shadow) {
			return errors.New("the buffer of a write was changed")
		}
		r.wrote(o, &out)
	}
	r.renew(buffer, shadow)
	return nil
}

// plausible checks the outcome against what is known without looking at memory.
func (r *runner) plausible(o *op, out *outcome) error {
	if !out.State.Terminal() {
		return fmt.Errorf("ended as %s", out.State)
	}
	if out.State == xfer.Completed {
		switch {
		case out.Err != nil:
			return fmt.Errorf("completed with an error: %w", out.Err)
		case out.counted && out.Bytes != o.Len:
			return fmt.Errorf("completed with %d of %d bytes", out.Bytes, o.Len)
		case o.Len > 0 && !o.prepared:
			return errors.New("completed although its local memory was not registered")
		case o.Len > 0 && !o.seen:
			return errors.New("completed although its remote memory was never registered")
		}
		return nil
	}
	switch {
	case out.Err == nil:
		return fmt.Errorf("ended as %s without an error", out.State)
	case out.counted && out.Bytes >= o.Len && o.Len > 0:
		return fmt.Errorf("ended as %s with all its %d bytes moved", out.State, o.Len)
	case out.State == xfer.Canceled && !out.cancelled:
		return fmt.Errorf("canceled although nobody asked for that: %w", out.Err)
	case !o.prepared && o.Len > 0 && out.State == xfer.Failed && !errors.Is(out.Err, xfer.AddressNotRegistered) && !out.cancelled:
		return fmt.Errorf("its local memory is not registered, and the error says otherwise: %w", out.Err)
	case o.prepared && o.always && !out.cancelled && !r.disturbed && !r.shape.Failing:
		return fmt.Errorf("failed although nothing was in its way: %w", out.Err)
	}
	return nil
}

// wrote tells the model how a write ended.
func (r *runner) wrote(o *op, out *outcome) {
	switch {
	case out.State == xfer.Completed && out.Remote == xfer.Confirmed:
		r.model.complete(o.write)
	case out.Remote != xfer.Confirmed:
		// It may still happen: the layer stays open for good.
	case out.counted && out.Bytes == 0 && !r.shape.LooseWrites:
		r.model.refuse(o.write)
	default:
		r.model.settle(o.write)
	}
}

// brought checks what is in the buffer of a read.
func (o *op) brought(out *outcome, got []byte, loose bool) error {
	switch {
	case loose && out.State != xfer.Completed:
		return nil
	case out.State == xfer.Completed:
		return o.read.check(got, nil)
	case out.untouched():
		if !bytes.Equal(got, o.old) {
			return fmt.Errorf("the buffer of a refused read was changed: %w", out.Err)
		}
		return nil
	}
	return o.read.check(got, o.old)
}
