package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
)

// Options say what is between the hosts.
type Options struct {
	Path Path
	MTU  int    // largest packet; 0: 1500
	Seed uint64 // of the losses
	Here bool   // the near host is the namespace that this process is in, which must be its own
}

// Lab is two hosts and the line between them.
type Lab struct {
	Near, Far *Host

	path    atomic.Pointer[Path]
	ways    [2]*direction
	devices []*os.File
	running sync.WaitGroup
}

// ErrUnavailable means that this host cannot have a lab, for the reason that the error gives: it takes root, the
// programs ip and nsenter, network namespaces, and TUN devices.
var ErrUnavailable = errors.New("no network namespaces here")

const (
	nearAddress = "10.213.0.1"
	farAddress  = "10.213.0.2"
	defaultMTU  = 1500
)

// New makes a lab. Its hosts reach each other, and nothing else, by the addresses that they name.
func New(o Options) (*Lab, error) {
	if err := o.Path.check(); err != nil {
		return nil, err
	}
	if o.MTU == 0 {
		o.MTU = defaultMTU
	}
	if o.MTU < 576 || o.MTU > 65535 {
		return nil, fmt.Errorf("an MTU of %d is none: 576 to 65535 are possible", o.MTU)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", ErrUnavailable)
	}
	for _, program := range []string{"ip", "nsenter", "cat"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %s is not installed", ErrUnavailable, program)
		}
	}
	l := &Lab{}
	if err := l.build(o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(err, l.Close()))
	}
	return l, nil
}

func (l *Lab) build(o Options) (err error) {
	l.path.Store(&o.Path)
	if l.Near = here(); !o.Here {
		if l.Near, err = hold(); err != nil {
			return err
		}
	}
	if l.Far, err = hold(); err != nil {
		return err
	}
	l.Near.Address, l.Far.Address = nearAddress, farAddress
	for _, h := range []*Host{l.Near, l.Far} {
		f, err := openDevice(h.namespace())
		if err != nil {
			return err
		}
		l.devices = append(l.devices, f)
		peer := farAddress
		if h == l.Far {
			peer = nearAddress
		}
		// The queue of the device must never drop: what is lost, the line loses.
		err = h.run("ip link set lo up",
			"ip link set "+device+" mtu "+strconv.Itoa(o.MTU)+" txqueuelen 20000 up",
			"ip addr add "+h.Address+" peer "+peer+" dev "+device)
		if err != nil {
			return err
		}
	}
	l.ways[0] = newDirection(l.devices[0], l.devices[1], &l.path, o.Seed, o.MTU)
	l.ways[1] = newDirection(l.devices[1], l.devices[0], &l.path, o.Seed+1, o.MTU)
	for _, d := range l.ways {
		d.start(&l.running)
	}
	return nil
}

// Set changes what the line does to packets from now on; those under way arrive as they would have.
func (l *Lab) Set(p Path) error {
	if err := p.check(); err != nil {
		return err
	}
	l.path.Store(&p)
	return nil
}

// Carried returns how many packets were delivered and lost so far, both directions together.
func (l *Lab) Carried() (delivered, lost int64) {
	for _, d := range l.ways {
		delivered += d.carried.Load()
		lost += d.lost.Load()
	}
	return delivered, lost
}

// Close takes everything down. Commands that still run keep their namespace, without the line, until they end.
func (l *Lab) Close() error {
	var errs []error
	for _, f := range l.devices {
		errs = append(errs, f.Close())
	}
	l.running.Wait()
	for _, h := range []*Host{l.Near, l.Far} {
		if h != nil {
			errs = append(errs, h.close())
		}
	}
	return errors.Join(errs...)
}
