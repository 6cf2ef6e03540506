package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Costs are measured or declared, and may change.
var cost = regexp.MustCompile(`[0-9.]+[µm]s`)

func TestReportIsPrinted(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := `not all completed: no usable transport (code 8)
request 0: write of 262144 bytes completed over local (predicted COST, next best tcp COST)
  not tcp: cost: want at most COST, have COST
  not rdma: installed: want rdma, have this version of moonpath has no rdma transport yet
  not rdma: protocol: want rdma, have peer offers tcp
request 1: write of 262144 bytes completed over tcp (the request insists on it)
  not local: pin: want tcp, have local
  not rdma: installed: want rdma, have this version of moonpath has no rdma transport yet
  not rdma: protocol: want rdma, have peer offers tcp
  not rdma: pin: want tcp, have rdma
request 2: write of 262144 bytes failed over no path
  not local: pin: want rdma, have local
  not tcp: pin: want rdma, have tcp
  not rdma: installed: want rdma, have this version of moonpath has no rdma transport yet
  not rdma: protocol: want rdma, have peer offers tcp
`
	if got := cost.ReplaceAllString(out.String(), "COST"); got != want {
		t.Error(cmp.Diff(want, got))
	}
}
