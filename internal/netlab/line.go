//moonpath:goroutines

package netlab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Path is what the line does to the packets of each direction.
type Path struct {
	Delay time.Duration // one way; a round trip takes twice as long
	Loss  float64       // share of packets that are lost, 0 to 1
	Rate  float64       // bits per second; 0: as fast as packets can be carried
	Dark  bool          // everything is lost, without a word to either end
}

func (p Path) check() error {
	if p.Delay < 0 || p.Delay > time.Second || p.Loss < 0 || p.Loss > 1 || p.Rate < 0 || p.Rate > 1e12 {
		return fmt.Errorf("no such path: %+v: a delay of 0 to 1s, a loss of 0 to 1 and a rate of 0 to 1e12 bit/s are possible", p)
	}
	return nil
}

// queueTime is how much the line holds back before it drops: what leaves later than that after its arrival is lost.
const queueTime = 25 * time.Millisecond

// slots bounds the packets of one direction that are under way: at 9000 bytes, 40 ms of 10 Gbit/s.
const slots = 6000

type packet struct {
	due  time.Time
	data []byte
}

// direction carries packets one way.
type direction struct {
	from, to *os.File
	path     *atomic.Pointer[Path]
	random   *rand.Rand
	free     chan []byte
	queue    chan packet
	idle     time.Time // when the line has sent all that it has taken

	carried, lost atomic.Int64
}

func newDirection(from, to *os.File, path *atomic.Pointer[Path], seed uint64, mtu int) *direction {
	d := &direction{from: from, to: to, path: path, random: rand.New(rand.NewPCG(seed, seed)),
		free: make(chan []byte, slots), queue: make(chan packet, slots)}
	memory := make([]byte, slots*mtu)
	for i := range slots {
		d.free <- memory[i*mtu : (i+1)*mtu : (i+1)*mtu]
	}
	return d
}

func (d *direction) start(running *sync.WaitGroup) {
	running.Go(d.take)
	running.Go(d.deliver)
}

// take reads packets and decides when each arrives, if it does.
func (d *direction) take() {
	defer close(d.queue)
	for buffer := range d.free {
		n, err := d.from.Read(buffer)
		if err != nil { // closed
			return
		}
		due, arrives := d.schedule(time.Now(), n)
		if !arrives {
			d.lost.Add(1)
			d.free <- buffer
			continue
		}
		d.queue <- packet{due, buffer[:n]}
	}
}

// schedule says when a packet of n bytes that comes now is at the other end.
func (d *direction) schedule(now time.Time, n int) (due time.Time, arrives bool) {
	p := d.path.Load()
	if p.Dark || p.Loss > 0 && d.random.Float64() < p.Loss {
		return time.Time{}, false
	}
	leaves := now
	if p.Rate > 0 {
		if d.idle.After(now) {
			leaves = d.idle
		}
		if leaves.Sub(now) > queueTime {
			return time.Time{}, false
		}
		leaves = leaves.Add(time.Duration(float64(n*8) / p.Rate * float64(time.Second)))
		d.idle = leaves
	}
	return leaves.Add(p.Delay), true
}

// deliver writes each packet when it is due.
func (d *direction) deliver() {
	for p := range d.queue {
		sleepUntil(p.due)
		if _, err := d.to.Write(p.data); err != nil {
			d.lost.Add(1)
		} else {
			d.carried.Add(1)
		}
		d.free <- p.data[:cap(p.data)]
	}
}

// sleepUntil asks the kernel, because Go's timers are up to a millisecond late in an idle process.
func sleepUntil(t time.Time) {
	if left := time.Until(t); left > 0 {
		wait := unix.NsecToTimespec(int64(left))
		_ = unix.Nanosleep(&wait, nil) // a signal ends it early, and one packet comes too soon
	}
}
