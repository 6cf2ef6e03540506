package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompatAndTablesAgree(t *testing.T) {
	keys := map[string]string{} // of each variable of a table
	for _, s := range slices.Concat(Engine, TCP) {
		for _, name := range s.Env {
			keys[name] = s.Key
		}
	}
	seen := map[string]bool{}
	for _, r := range Compat {
		if seen[r.Name] {
			t.Errorf("%s has two rows", r.Name)
		}
		seen[r.Name] = true
		if r.What == "" || !strings.HasPrefix(r.Name, envPrefix) {
			t.Errorf("%+v lacks a text or the prefix %s", r, envPrefix)
		}
		if honoured := r.State == Honoured || r.State == HonouredDifferently; honoured != (keys[r.Name] != "") {
			t.Errorf("%s is %s, but its setting is %q", r.Name, r.State, keys[r.Name])
		}
		if r.Key != keys[r.Name] {
			t.Errorf("%s names the setting %q, the table %q", r.Name, r.Key, keys[r.Name])
		}
	}
	for name := range keys {
		if !seen[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

func TestIgnoredVariablesGiveOneWarningEach(t *testing.T) {
	got := IgnoredEnv([]string{
		"MC_TCP_SLICE_SIZE=4096", "MC_TCP_SLICE_SIZE=4096", "MC_REDIS_PASSWORD=secret", "MC_TCP_LANES_PER_PEER=2",
		"MC_FORCE_TCP", "MC_NO_SUCH_NAME=1", "PATH=/bin", "XMC_FORCE_HCA=1", "",
	})
	want := []Warning{
		{"MC_REDIS_PASSWORD", "ignored for now: metadata services other than peer-to-peer are not in this version"},
		{"MC_TCP_SLICE_SIZE", "ignored: socket calls are vectored and take as much as the socket has room for"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownVariablesNameTheNearest(t *testing.T) {
	own := []Setting{{Key: "k", Env: []string{"MC_OWN_NAME"}, Kind: Text}}
	got := UnknownEnv([]string{
		"MC_TCP_LANES_PER_PEERS=2", "MC_FORCE_TPC=1", "MC_OWN_NAME=x", "MC_OWN_NAMES=x", "MC_ZZZZZZZZZZZZZZ=1",
		"MC_TCP_LANES_PER_PEER=2", "MC_GID_INDEX=3", "HOME=/", "MC_FORCE_TPC=2",
	}, own)
	want := []Warning{
		{"MC_FORCE_TPC", "unknown, ignored: did you mean MC_FORCE_TCP?"},
		{"MC_OWN_NAMES", "unknown, ignored: did you mean MC_OWN_NAME?"},
		{"MC_TCP_LANES_PER_PEERS", "unknown, ignored: did you mean MC_TCP_LANES_PER_PEER?"},
		{"MC_ZZZZZZZZZZZZZZ", "unknown, ignored: docs/compat/env.md lists the names"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1},
		{"abc", "ab", 1}, {"ab", "abc", 1}, {"tpc", "tcp", 2}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
