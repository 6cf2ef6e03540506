package config

import (
	"errors"
	"testing"
)

func TestStateDirFollowsTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"XDG_STATE_HOME=/s", "HOME=/h"}, "/s/moonpath"},
		{[]string{"HOME=/h"}, "/h/.local/state/moonpath"},
		{[]string{"XDG_STATE_HOME=", "HOME=/h"}, "/h/.local/state/moonpath"},
		{[]string{"XDG_STATE_HOME=relative", "HOME=/h"}, "/h/.local/state/moonpath"},
		{[]string{"HOME=relative"}, ""},
		{nil, ""},
	} {
		got, err := StateDir(Lookup(c.environ))
		if got != c.want || errors.Is(err, ErrNoStateDir) != (c.want == "") {
			t.Errorf("%q: %q, %v; want %q", c.environ, got, err, c.want)
		}
	}
}
