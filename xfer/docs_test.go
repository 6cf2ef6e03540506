package xfer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/compat/codes.md anew")

func TestGeneratedCodesPage(t *testing.T) {
	path := filepath.Join("..", "docs", "compat", "codes.md")
	want := codesPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s differs from the table (%v): run go test ./xfer -run TestGeneratedCodesPage -update", path, err)
	}
}

func codesPage() string {
	var theirs, ours strings.Builder
	for _, c := range Codes() {
		table := &theirs
		if c > 1000 {
			table = &ours
		}
		fmt.Fprintf(table, "| %d | %d | `%s` | %s | %s | %s |\n", int(c), c.Int(), c.Name(), c.Error(), c.Side(), c.Next())
	}
	const head = "| number | int | name | meaning | side | next step |\n| ---: | ---: | --- | --- | --- | --- |\n"
	return `<!-- Generated from package xfer: go test ./xfer -run TestGeneratedCodesPage -update -->

# Error codes

An error of the engine carries one of these codes: test with ` + "`errors.Is(err, xfer.BatchBusy)`" + `, or take it with
` + "`xfer.CodeOf(err)`" + `. The ` + "`*xfer.Fault`" + ` around it (` + "`errors.As`" + `) adds where it happened, with which peer, the
error underneath with the system's error number, the side that has to change something, and a next step; the last two may
be more exact than those here.

**number** is the code, as Mooncake's Status has it. **int** is ` + "`Code.Int()`" + `: what Mooncake's functions return that answer
with 0 or a negative number. It is the negated code, except for ` + "`NotImplemented`" + `; Mooncake itself has no such form of
` + "`NotSupportedTransport`" + `.

**side** is who most often has to change something: the *caller* (the request, or the order of calls), *here* (this engine's
settings, build or host), the *peer*'s deployment, the *network*, or the *metadata* (the description is not that of who
answers). What can disagree, one by one: [disagreements](../reference/disagreements.md).

## Mooncake's

` + head + theirs.String() + `
There is no 5.

## moonpath's own

Mooncake has no number for these.

` + head + ours.String()
}
