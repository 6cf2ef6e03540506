package main

import (
	"context"
	"time"
)

// peers are the programs that pairs are made of.
type peers struct {
	moonpath  *moonpath
	cxx       *cxx
	yardstick *yardstick
	iperf     *iperf

	moonpathTarget, cxxTarget, yardstickTarget, iperfTarget *service
}

func newPeers(moonpathBinary, yardstickBinary string) *peers {
	p := &peers{
		moonpath:  &moonpath{binary: moonpathBinary},
		cxx:       &cxx{},
		yardstick: &yardstick{binary: yardstickBinary},
		iperf:     &iperf{},
	}
	p.moonpathTarget = &service{begin: p.moonpath.serve}
	p.cxxTarget = &service{begin: p.cxx.serve}
	p.yardstickTarget = &service{begin: p.yardstick.serve}
	p.iperfTarget = &service{begin: p.iperf.serve}
	return p
}

func (p *peers) stop() {
	for _, s := range []*service{p.moonpathTarget, p.cxxTarget, p.yardstickTarget, p.iperfTarget} {
		s.stop()
	}
}

// Names of pairs, as they appear in results and gates.
const (
	tcp            = "tcp"
	tcpToCxx       = "tcp-to-cxx"
	cxxToTCP       = "cxx-to-tcp"
	cxxNoPoolToTCP = "cxx-nopool-to-tcp"
	cxxPool        = "cxx-pool"
	cxxNoPool      = "cxx-nopool"
	yardsticks     = "yardstick"
	iperf1         = "iperf3-1"
	iperf2         = "iperf3-2"
	iperf4         = "iperf3-4"
	memcpyCold     = "memcpy-cold"
	besideBulk     = "tcp-small-beside-bulk"
)

// smallAlone is the cell whose latency is compared with and without bulk traffic beside it.
var smallAlone = cell{"read", 4 * kib, 1, 1}

// pairs lists everything that can be measured. Pairs that start with the C++ engine, and what they are compared with,
// run cxxRounds times: they differ by little.
func (p *peers) pairs(cells []cell, rounds, cxxRounds int) []*pair {
	type initiate = func(context.Context, cell, time.Duration) (sample, error)
	fromCxx := func(name string, service *service, segment *string, pool bool) *pair {
		return &pair{name: name, cells: cells, rounds: cxxRounds,
			start: func(ctx context.Context) (*target, error) {
				if err := p.cxx.find(ctx); err != nil {
					return nil, err
				}
				return service.start(ctx)
			},
			initiate: func(ctx context.Context, c cell, d time.Duration) (sample, error) {
				return p.cxx.initiate(ctx, *segment, pool, c, d)
			}}
	}
	fromMoonpath := func(name string, service *service, segment *string, cells []cell, more ...string) *pair {
		return &pair{name: name, cells: cells, rounds: rounds, start: service.start,
			initiate: func(ctx context.Context, c cell, d time.Duration) (sample, error) {
				return p.moonpath.bench(ctx, *segment, c, d, more...)
			}}
	}
	streams := func(name string, n int) *pair {
		return &pair{name: name, cells: []cell{{"write", iperfBlock, 1, n}}, rounds: rounds,
			start: p.iperfTarget.start, initiate: p.iperf.initiate}
	}
	alone := func(context.Context) (*target, error) { return nil, nil }

	own, published := &p.moonpath.segment, &p.cxx.segment
	return []*pair{
		fromMoonpath(tcp, p.moonpathTarget, own, cells),
		fromMoonpath(tcpToCxx, p.cxxTarget, published, cells),
		fromCxx(cxxToTCP, p.moonpathTarget, own, true),
		fromCxx(cxxNoPoolToTCP, p.moonpathTarget, own, false),
		fromCxx(cxxPool, p.cxxTarget, published, true),
		fromCxx(cxxNoPool, p.cxxTarget, published, false),
		{name: yardsticks, cells: cells, rounds: rounds, start: p.yardstickTarget.start, initiate: p.yardstick.initiate},
		fromMoonpath(besideBulk, p.moonpathTarget, own, []cell{smallAlone}, "--beside-bulk"),
		streams(iperf1, 1), streams(iperf2, 2), streams(iperf4, 4),
		{name: memcpyCold, cells: copies(cells), rounds: rounds, start: alone, initiate: initiate(memcpy)},
	}
}

// copies is one cell for each block length.
func copies(cells []cell) []cell {
	var out []cell
	for _, c := range cells {
		if len(out) == 0 || out[len(out)-1].Block != c.Block {
			out = append(out, cell{"copy", c.Block, 1, 1})
		}
	}
	return out
}
