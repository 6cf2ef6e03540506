package repolint

import (
	"path"
	"regexp"
	"strings"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// checkLinks follows the links of Markdown pages that lead to other files of the repository.
func checkLinks(t *tree) []finding {
	var fs []finding
	for _, p := range t.paths() {
		if path.Ext(p) != ".md" {
			continue
		}
		for i, line := range strings.Split(t.texts[p], "\n") {
			for _, m := range markdownLink.FindAllStringSubmatch(line, -1) {
				to, _, _ := strings.Cut(m[1], "#")
				if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
					continue
				}
				if !t.holds(path.Join(path.Dir(p), to)) {
					fs = append(fs, finding{p, i + 1, to + " does not exist"})
				}
			}
		}
	}
	return fs
}

// holds reports whether there is a text file of that name, or a folder with one.
func (t *tree) holds(name string) bool {
	for p := range t.texts {
		if below(p, name) {
			return true
		}
	}
	return false
}
