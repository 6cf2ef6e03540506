package main

import (
	"fmt"
	"regexp"
	"strings"
)

// counts is what the closing line says.
type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func (c *counts) add(d counts) {
	c.passed += d.passed
	c.failed += d.failed
	c.skipped += d.skipped
}

// skip is one thing that did not run.
type skip struct{ what, why string }

// failure is one thing that failed, with what it printed.
type failure struct {
	pkg, test string // test is empty when the package failed outside its tests
	text      string
	seed      string // of -shuffle
}

func (f failure) name(module string) string {
	if f.test == "" {
		return short(f.pkg, module) + " (outside its tests)"
	}
	return short(f.pkg, module) + " " + f.test
}

// packageResult is what is known of a package once it has ended.
type packageResult struct {
	pkg      string
	counts   counts
	noTests  bool
	elapsed  float64
	coverage string
	failures []failure
	skips    []skip
}

// testRun is one test or subtest while its package runs.
type testRun struct {
	name   string
	action string // pass, fail, skip; empty while it runs
	output []string
	parent bool
}

// packageRun collects the events of one package.
type packageRun struct {
	tests    []*testRun
	byName   map[string]*testRun
	output   []string
	seed     string
	coverage string
}

// tally turns events into packageResults.
type tally struct {
	running map[string]*packageRun
	builds  map[string][]string // compiler output by ImportPath
}

func newTally() *tally {
	return &tally{running: map[string]*packageRun{}, builds: map[string][]string{}}
}

// add takes one event; the result is not nil when it ended a package.
func (t *tally) add(e event) *packageResult {
	switch {
	case e.Action == "build-output":
		t.builds[e.ImportPath] = append(t.builds[e.ImportPath], e.Output)
		return nil
	case e.Package == "":
		return nil
	}
	p := t.running[e.Package]
	if p == nil {
		p = &packageRun{byName: map[string]*testRun{}}
		t.running[e.Package] = p
	}
	if e.Test != "" {
		p.addTest(e)
		return nil
	}
	switch e.Action {
	case "output":
		p.addOutput(e.Output)
	case "pass", "fail", "skip":
		delete(t.running, e.Package)
		return p.finish(e, t.builds[e.FailedBuild])
	}
	return nil
}

// abandon ends the packages that never reported an end, as happens when the go command is killed.
func (t *tally) abandon() []*packageResult {
	var rs []*packageResult
	for pkg, p := range t.running {
		rs = append(rs, p.finish(event{Action: "fail", Package: pkg}, nil))
	}
	t.running = map[string]*packageRun{}
	return rs
}

func (p *packageRun) addTest(e event) {
	r := p.byName[e.Test]
	if r == nil {
		r = &testRun{name: e.Test}
		p.byName[e.Test] = r
		p.tests = append(p.tests, r)
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
			p.markParents(e.Test[:i])
		}
	}
	switch e.Action {
	case "output":
		if !isFrame(e.Output) {
			r.output = append(r.output, e.Output)
		}
	case "pass":
		r.action, r.output = e.Action, nil
	case "fail", "skip":
		r.action = e.Action
	}
}

// markParents marks name, or the nearest test above it: the name of a subtest may contain slashes of its own.
func (p *packageRun) markParents(name string) {
	for {
		if r := p.byName[name]; r != nil {
			r.parent = true
			return
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return
		}
		name = name[:i]
	}
}

var coverageLine = regexp.MustCompile(`coverage: ([0-9.]+)% of statements`)

func (p *packageRun) addOutput(s string) {
	if seed, ok := strings.CutPrefix(s, "-test.shuffle "); ok {
		p.seed = strings.TrimSpace(seed)
		return
	}
	if m := coverageLine.FindStringSubmatch(s); m != nil {
		p.coverage = m[1]
	}
	p.output = append(p.output, s)
}

func (p *packageRun) finish(e event, build []string) *packageResult {
	r := &packageResult{pkg: e.Package, elapsed: e.Elapsed, coverage: p.coverage}
	r.noTests = e.Action == "skip" && len(p.tests) == 0
	for _, t := range p.tests {
		p.finishTest(t, r)
	}
	if e.Action == "fail" && r.counts.failed == 0 {
		text := strings.Join(build, "")
		if text == "" {
			text = strings.Join(p.output, "")
		}
		r.counts.failed++
		r.failures = append(r.failures, failure{pkg: r.pkg, text: text, seed: p.seed})
	} else if e.Action == "fail" {
		r.failures[0].text = strings.Join(meaningful(p.output), "") + r.failures[0].text
	}
	return r
}

func (p *packageRun) finishTest(t *testRun, r *packageResult) {
	text := strings.Join(t.output, "")
	switch t.action {
	case "pass":
		if !t.parent {
			r.counts.passed++
		}
	case "skip":
		r.counts.skipped++
		r.skips = append(r.skips, skip{what: r.pkg + "." + t.name, why: skipReason(t.output)})
	case "fail":
		if t.parent && p.failedBelow(t.name) {
			// Its subtests are the failures; what it printed itself belongs to them.
			if text = strings.Join(meaningful(t.output), ""); text != "" {
				r.failures = append(r.failures, failure{pkg: r.pkg, test: t.name, text: text, seed: p.seed})
			}
			return
		}
		r.counts.failed++
		r.failures = append(r.failures, failure{pkg: r.pkg, test: t.name, text: text, seed: p.seed})
	default:
		if t.parent && p.failedBelow(t.name) {
			return
		}
		r.counts.failed++
		text += "    the test did not end: the process exited, crashed or was killed while it ran\n"
		r.failures = append(r.failures, failure{pkg: r.pkg, test: t.name, text: text, seed: p.seed})
	}
}

// failedBelow reports whether a subtest of name failed or did not end.
func (p *packageRun) failedBelow(name string) bool {
	for _, t := range p.tests {
		if strings.HasPrefix(t.name, name+"/") && t.action != "pass" && t.action != "skip" {
			return true
		}
	}
	return false
}

// isFrame recognises the lines by which the testing package marks progress.
func isFrame(s string) bool {
	s = strings.TrimLeft(s, " ")
	for _, p := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// meaningful leaves out the verdict lines that repeat what the counts say.
func meaningful(output []string) []string {
	var kept []string
	for _, s := range output {
		l := strings.TrimSpace(s)
		if l == "" || l == "FAIL" || l == "PASS" || strings.HasPrefix(l, "FAIL\t") ||
			strings.HasPrefix(l, "--- FAIL") || strings.HasPrefix(l, "exit status") || strings.HasPrefix(l, "coverage:") {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

var sourceLine = regexp.MustCompile(`^\s+[^\s:]+\.go:\d+: `)

// skipReason is the last message that the test logged: t.Skip logs, then ends the test.
func skipReason(output []string) string {
	var lines []string
	for _, s := range output {
		if strings.HasPrefix(strings.TrimLeft(s, " "), "--- SKIP") {
			continue
		}
		if loc := sourceLine.FindStringIndex(s); loc != nil {
			lines, s = nil, s[loc[1]:]
		} else if lines == nil {
			continue
		}
		lines = append(lines, strings.TrimSpace(s))
	}
	why := strings.TrimSpace(strings.Join(lines, " "))
	if why == "" {
		return "no reason given"
	}
	return why
}
