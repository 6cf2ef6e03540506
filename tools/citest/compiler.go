package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// needCompiler makes sure that the C compiler is there which the race detector links with. The answer is the reason
// why it is not, or empty.
func needCompiler(ctx context.Context, out, errOut io.Writer) string {
	if _, err := exec.LookPath("gcc"); err == nil {
		return ""
	}
	const want = "the race detector needs gcc, which is missing here"
	if _, err := exec.LookPath("apt-get"); err != nil {
		return want + ", and there is no apt-get to fetch it with"
	}
	if os.Geteuid() != 0 {
		return want + ", and only root can fetch it: apt-get install gcc libc6-dev"
	}
	for _, args := range [][]string{
		{"apt-get", "update"},
		{"apt-get", "install", "-y", "--no-install-recommends", "gcc", "libc6-dev"},
	} {
		fmt.Fprintf(out, "fetching gcc for the race detector: %s\n", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = errOut, errOut
		if err := cmd.Run(); err != nil {
			return fmt.Sprintf("%s, and %s failed: %v", want, strings.Join(args[:2], " "), err)
		}
	}
	return ""
}
