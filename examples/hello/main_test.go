package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHelloGoesThereAndBack(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := "written: hello, other engine\nread:    hello, other engine\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
