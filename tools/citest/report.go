package main

import (
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
)

// printPackage writes the progress line of a package, and what its failures printed.
func printPackage(w io.Writer, r *packageResult, done, total int, module string) {
	verdict := "ok  "
	switch {
	case r.counts.failed > 0:
		verdict = "FAIL"
	case r.noTests:
		verdict = "-   "
	}
	detail := fmt.Sprintf("%d passed", r.counts.passed)
	if r.noTests {
		detail = "no test files"
	}
	if r.counts.failed > 0 {
		detail += fmt.Sprintf(", %d failed", r.counts.failed)
	}
	if r.counts.skipped > 0 {
		detail += fmt.Sprintf(", %d skipped", r.counts.skipped)
	}
	if r.coverage != "" {
		detail += fmt.Sprintf(", %s%% covered", r.coverage)
	}
	fmt.Fprintf(w, "[%*d/%d] %s %s: %s (%.1f s)\n", len(fmt.Sprint(total)), done, total, verdict, short(r.pkg, module), detail, r.elapsed)
	for _, f := range r.failures {
		fmt.Fprintf(w, "--- failed: %s\n%s", f.name(module), f.text)
		if !strings.HasSuffix(f.text, "\n") {
			fmt.Fprintln(w)
		}
	}
}

// printFailures lists what failed and how to run it again.
func printFailures(w io.Writer, fs []failure, module string, extra []string) {
	if len(fs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFailed, and how to run it again:\n")
	for _, f := range fs {
		fmt.Fprintf(w, "  %s\n      %s\n", f.name(module), rerun(f, module, extra))
	}
}

func rerun(f failure, module string, extra []string) string {
	args := append([]string{"go", "test", "-count=1"}, extra...)
	if f.seed != "" {
		args = append(args, "-shuffle="+f.seed)
	}
	if f.test != "" {
		var parts []string
		for _, p := range strings.Split(f.test, "/") {
			// A quote would end the shell's string, so any character stands for it.
			parts = append(parts, "^"+strings.ReplaceAll(regexp.QuoteMeta(p), "'", ".")+"$")
		}
		args = append(args, "-run", "'"+strings.Join(parts, "/")+"'")
	}
	return strings.Join(append(args, "./"+strings.TrimPrefix(short(f.pkg, module), "./")), " ")
}

// skippedHeading opens the closing list; .ci/run looks for it.
const skippedHeading = "Skipped, and why:"

// printSkips writes the closing list, one entry for each reason.
func printSkips(w io.Writer, skips []skip, module string) {
	if len(skips) == 0 {
		fmt.Fprintf(w, "\nSkipped: nothing.\n")
		return
	}
	whats := map[string][]string{}
	for _, s := range skips {
		whats[s.why] = append(whats[s.why], short(s.what, module))
	}
	whys := make([]string, 0, len(whats))
	for why := range whats {
		whys = append(whys, why)
	}
	sort.Strings(whys)
	fmt.Fprintf(w, "\n%s\n", skippedHeading)
	for _, why := range whys {
		names := whats[why]
		sort.Strings(names)
		fmt.Fprintf(w, "  %s\n", why)
		for _, n := range names {
			fmt.Fprintf(w, "      %s\n", n)
		}
	}
}

// short leaves the module path off a package path; the root package is ".".
func short(pkg, module string) string {
	if pkg == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(pkg, module+"."); ok { // a test of the root package
		return rest
	}
	return strings.TrimPrefix(pkg, module+"/")
}
