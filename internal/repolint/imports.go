package repolint

import (
	"go/ast"
	"regexp"
	"strings"
)

// mayUseUnsafe are the folders that work with memory that Go does not manage.
var mayUseUnsafe = []string{"mem", "internal/sysx", "internal/ffi", "tools"}

func checkUnsafe(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		f.imports(func(p string, spec *ast.ImportSpec) {
			if p == "unsafe" && !below(f.dir, mayUseUnsafe...) {
				fs = append(fs, f.at(spec.Pos(), "%s imports unsafe", f.dir))
			}
		})
	}
	return fs
}

const (
	hotMarker       = "//moonpath:hot"
	goroutineMarker = "//moonpath:goroutines"
)

// has reports whether a comment line of the file is the marker, alone or followed by an explanation.
func (f *goFile) has(marker string) bool {
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if c.Text == marker || strings.HasPrefix(c.Text, marker+" ") {
				return true
			}
		}
	}
	return false
}

func checkHotFiles(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if !f.has(hotMarker) {
			continue
		}
		f.imports(func(p string, spec *ast.ImportSpec) {
			if p == "fmt" {
				fs = append(fs, f.at(spec.Pos(), "a file marked %s imports fmt; make errors in another file", hotMarker))
			}
		})
	}
	return fs
}

var markerLike = regexp.MustCompile(`^//\s*moonpath:\w`)

func checkMarkers(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		for _, g := range f.ast.Comments {
			for _, c := range g.List {
				if markerLike.MatchString(c.Text) && !isMarker(c.Text) {
					fs = append(fs, f.at(c.Pos(), "%q is no marker; there are %s and %s", c.Text, hotMarker, goroutineMarker))
				}
			}
		}
	}
	return fs
}

func isMarker(comment string) bool {
	word, _, _ := strings.Cut(comment, " ")
	return word == hotMarker || word == goroutineMarker
}
