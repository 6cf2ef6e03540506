package repolint

import (
	"fmt"
	"slices"
	"strings"
)

// paths lists the text files in order.
func (t *tree) paths() []string {
	ps := make([]string, 0, len(t.texts))
	for p := range t.texts {
		ps = append(ps, p)
	}
	slices.Sort(ps)
	return ps
}

func checkNoReplace(t *tree) []finding {
	var fs []finding
	for _, p := range t.paths() {
		if !strings.HasSuffix(p, ".mod") {
			continue
		}
		for i, line := range strings.Split(t.texts[p], "\n") {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "replace" {
				fs = append(fs, finding{p, i + 1, "a replace line"})
			}
		}
	}
	return fs
}

// machinePaths are put together from halves, so that this file does not find itself.
var machinePaths = []string{"/wo" + "rk/", "/ro" + "ot/", "../sha" + "red", "sha" + "red/design", "sha" + "red/spec"}

func checkMachinePaths(t *tree) []finding {
	var fs []finding
	for _, p := range t.paths() {
		for i, line := range strings.Split(t.texts[p], "\n") {
			for _, word := range machinePaths {
				if strings.Contains(line, word) {
					fs = append(fs, finding{p, i + 1, fmt.Sprintf("%q; name it relative to the repository, or leave it out", word)})
				}
			}
		}
	}
	return fs
}

func checkLicence(t *tree) []finding {
	text, ok := t.texts["LICENSE"]
	if !ok {
		return []finding{{path: "LICENSE", what: "missing"}}
	}
	for _, part := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(text, part) {
			return []finding{{path: "LICENSE", what: fmt.Sprintf("not the whole Apache-2.0 text: %q is not in it", part)}}
		}
	}
	return nil
}
