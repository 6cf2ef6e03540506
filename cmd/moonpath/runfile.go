package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/xfer"
)

const (
	runsKept    = 16      // files; older ones are removed
	runBytes    = 1 << 20 // of one file; the oldest events go first
	textBytes   = 2 << 10 // of one event
	runTemplate = "20060102T150405.000000000Z"
)

// runView is the flight recorder of one run as it is kept after the process, and as explain --last --json prints it.
type runView struct {
	Command  string       `json:"command"`
	Version  string       `json:"version"`
	PID      int          `json:"pid"`
	Engine   string       `json:"engine"`
	Began    time.Time    `json:"began"`
	Ended    time.Time    `json:"ended"`
	Error    *failure     `json:"error,omitempty"`
	Events   []eventView  `json:"events"`
	Dropped  int          `json:"dropped"` // older events that the file has no room for
	Counters []obs.Sample `json:"counters"`
}

// eventView is one event: of text, decision and fault there is the one that fits.
type eventView struct {
	When     time.Time          `json:"when"`
	Last     time.Time          `json:"last"`
	Times    int                `json:"times"`
	Kind     string             `json:"kind"`
	Subject  string             `json:"subject"`
	Text     string             `json:"text,omitempty"`
	Decision *selector.Decision `json:"decision,omitempty"`
	Fault    *failure           `json:"fault,omitempty"`
}

// keepRun writes what the command's engine has recorded. That a run cannot be kept is no reason for it to fail.
func (a *app) keepRun(command string, failed error) {
	if a.engine == nil || !slices.Contains([]string{"target", "write", "read", "bench"}, command) {
		return
	}
	r := newRunView(a.engine, command)
	r.Began = a.opened.UTC()
	if failed != nil {
		if a.ctx.Err() != nil {
			failed = interrupted(failed)
		}
		f := describe(failed)
		r.Error = &f
	}
	dir, err := runsDir()
	if err == nil {
		err = r.write(dir)
	}
	if err != nil {
		a.engineLog.Info("decisions of this run not kept for moonpath explain --last", "error", err)
	}
}

func newRunView(engine *moonpath.Engine, command string) *runView {
	r := &runView{Command: command, Version: moonpath.Version(), PID: os.Getpid(), Engine: engine.Name(), Ended: time.Now().UTC(), Events: []eventView{}, Counters: []obs.Sample{}}
	for _, e := range engine.Events() {
		r.Events = append(r.Events, newEventView(e))
	}
	for _, s := range engine.Counters() {
		if s.Value != 0 && !strings.Contains(s.Path, "/") { // those of lanes and peers add up to these
			r.Counters = append(r.Counters, s)
		}
	}
	return r
}

func newEventView(e obs.Event) eventView {
	v := eventView{When: e.When.UTC(), Last: e.Last.UTC(), Times: e.Times, Kind: e.Kind, Subject: e.Subject}
	switch detail := e.Detail.(type) {
	case *selector.Decision:
		v.Decision = detail
	case *xfer.Fault:
		f := describe(detail)
		f.Detail = shortened(f.Detail)
		v.Fault = &f
	default:
		v.Text = shortened(e.Text())
	}
	return v
}

func shortened(text string) string {
	if len(text) > textBytes {
		return strings.ToValidUTF8(text[:textBytes], "") + "…"
	}
	return text
}

// encode returns the file's content, without the oldest events if all are too many.
func (r *runView) encode() ([]byte, error) {
	for {
		text, err := json.Marshal(r)
		if err != nil || len(text) <= runBytes || len(r.Events) == 0 {
			return text, err
		}
		half := (len(r.Events) + 1) / 2
		r.Events = r.Events[half:]
		r.Dropped += half
	}
}

func runsDir() (string, error) {
	dir, err := config.StateDir(config.LookupEnv)
	return filepath.Join(dir, "runs"), err
}

// write makes a file of its own, complete or not at all, and removes those that are too old.
func (r *runView) write(dir string) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, r.Ended.Format(runTemplate)+"-"+strconv.Itoa(r.PID)+".json")
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		os.Remove(path + ".new")
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	names, err := runNames(dir)
	for _, name := range names[:max(len(names)-runsKept, 0)] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return err
}

// runNames lists the kept runs, oldest first.
func runNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// lastRun reads the newest kept run.
func lastRun() (*runView, error) {
	dir, err := runsDir()
	if err != nil {
		return nil, noRun("no run is kept: "+err.Error(), nil)
	}
	names, err := runNames(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0:
		return nil, noRun("no run is kept in "+dir, nil)
	case err != nil:
		return nil, noRun("the kept runs in "+dir+" cannot be read", err)
	}
	path := filepath.Join(dir, names[len(names)-1])
	file, err := os.Open(path)
	if err != nil {
		return nil, fileError(exitFailed, path, errors.Unwrap(err))
	}
	defer file.Close()
	r := new(runView)
	if err := json.NewDecoder(io.LimitReader(file, 2*runBytes)).Decode(r); err != nil {
		return nil, &toolError{exit: exitFailed, name: "File", stage: "file", detail: fmt.Sprintf("file %s holds no run", path), cause: err, next: "remove it, and run the command again"}
	}
	return r, nil
}

func noRun(detail string, cause error) error {
	return &toolError{exit: exitFailed, name: "NoRun", stage: "file", detail: detail, cause: cause,
		next: "run moonpath write, read, bench or target first, and let it end: what it decided is kept in XDG_STATE_HOME"}
}
