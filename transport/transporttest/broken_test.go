package transporttest

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// defect breaks one promise of a sound transport.
type defect struct {
	name    string
	noticed string // by this case, group/name
	says    string // in the case's message
	put     func(b *broken)
}

var defects = slices.Concat(dataDefects, workDefects, endDefects)

// TestEachDefectIsNoticed runs the case that has to notice against the sound transport, which passes, and against the
// broken one, which does not.
func TestEachDefectIsNoticed(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			c, g := find(t, d.noticed)
			if raceDetector && g == "allocation" {
				t.Skip("the race detector allocates, too")
			}
			if r := attempt(t, c, g, 20*time.Second, nil); r.failed || r.skipped {
				t.Fatalf("the sound transport does not pass %s: %s", d.noticed, r.log)
			}
			patience := 2 * time.Second
			if strings.HasPrefix(d.says, "did not") {
				patience = 300 * time.Millisecond // which will pass
			}
			r := attempt(t, c, g, patience, d.put)
			if !r.failed || !strings.Contains(r.log, d.says) {
				t.Errorf("%s did not notice, or not that %q; it said: %s", d.noticed, d.says, r.log)
			}
			if !strings.Contains(r.log, "demanded: "+c.demands+"\nhappened: ") || !strings.Contains(r.log, "read more: "+guide+"#"+g) {
				t.Errorf("the message does not say what was demanded, what happened and where to read more: %s", r.log)
			}
		})
	}
}

// Cases that differ in a length alone count as one.
func TestEveryCaseHasADefectThatItNotices(t *testing.T) {
	noticed := make(map[string]bool)
	kind := func(name string) string { return digits.ReplaceAllString(name, "N") }
	for _, d := range defects {
		noticed[kind(d.noticed)] = true
	}
	for _, g := range groups {
		for _, c := range g.cases {
			if name := kind(g.name + "/" + c.name); !noticed[name] {
				t.Errorf("nobody has seen %s fail", name)
			}
		}
	}
}

var digits = regexp.MustCompile("[0-9]+")

func find(t *testing.T, name string) (testCase, string) {
	t.Helper()
	for _, g := range groups {
		for _, c := range g.cases {
			if g.name+"/"+c.name == name {
				return c, g.name
			}
		}
	}
	t.Fatalf("there is no case %s", name)
	return testCase{}, ""
}

// attempt runs one case and returns its verdict.
func attempt(t *testing.T, c testCase, group string, patience time.Duration, put func(*broken)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	b := &broken{release: make(chan struct{}), ice: ice{stalls: slices.Contains(c.needs, StallLimit)}}
	var done sync.WaitGroup
	done.Go(func() {
		perform(r, c, group, Options{Patience: patience}.withDefaults(), func() Pair { return b.pair(put) })
	})
	done.Wait()
	close(b.release)
	for _, f := range b.leaked {
		f.Close()
	}
	return r
}
