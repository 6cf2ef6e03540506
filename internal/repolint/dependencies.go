package repolint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

const (
	dependenciesPath = "docs/dependencies.md"
	lintModPath      = "tools/lint.mod"
)

// checkDependencies compares the modules that we depend on directly with the rows of the document.
func checkDependencies(t *tree) []finding {
	doc, ok := t.texts[dependenciesPath]
	if !ok {
		return []finding{{path: dependenciesPath, what: "missing"}}
	}
	var fs []finding
	rows := map[string]int{}
	for _, row := range tableRows(doc) {
		if len(row.text) > 1 && strings.Contains(row.text[0], ".") {
			rows[row.text[0]] = row.line
			if i := slices.Index(row.text, ""); i >= 0 {
				fs = append(fs, finding{dependenciesPath, row.line, fmt.Sprintf("cell %d of %s is empty", i+1, row.text[0])})
			}
		}
	}
	wanted := t.direct()
	for _, m := range wanted {
		if rows[m] == 0 {
			fs = append(fs, finding{path: dependenciesPath, what: "no row for " + m})
		}
	}
	known := append(parseMod(t.texts["go.mod"]).modules(), wanted...)
	for m, line := range rows {
		if !slices.Contains(known, m) {
			fs = append(fs, finding{dependenciesPath, line, m + " is in no module file; take the row out"})
		}
	}
	return fs
}

// direct lists the modules that a file of ours imports, that go.mod lists as direct, or that hold a tool of ours.
func (t *tree) direct() []string {
	imported := map[string]bool{}
	for _, f := range t.gofiles {
		f.imports(func(p string, _ *ast.ImportSpec) { imported[p] = true })
	}
	var ms []string
	for _, r := range parseMod(t.texts["go.mod"]).requires {
		direct := !r.indirect
		for p := range imported {
			direct = direct || below(p, r.module)
		}
		if direct {
			ms = append(ms, r.module)
		}
	}
	lint := parseMod(t.texts[lintModPath])
	for _, r := range lint.requires {
		if slices.ContainsFunc(lint.tools, func(tool string) bool { return below(tool, r.module) }) {
			ms = append(ms, r.module)
		}
	}
	return ms
}

// modFile is what we need of a go.mod file.
type modFile struct {
	requires []require
	tools    []string
}

type require struct {
	module   string
	indirect bool
}

func (m modFile) modules() []string {
	var ms []string
	for _, r := range m.requires {
		ms = append(ms, r.module)
	}
	return ms
}

// parseMod reads the require and tool lines of a file that the go command accepts.
func parseMod(text string) modFile {
	var m modFile
	block := "" // the directive of the parentheses that we are in
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if block != "" {
			fields = append([]string{block}, fields...)
		}
		switch {
		case len(fields) < 2:
		case fields[1] == "(":
			block = fields[0]
		case fields[1] == ")":
			block = ""
		case fields[0] == "require":
			m.requires = append(m.requires, require{fields[1], strings.HasSuffix(line, "// indirect")})
		case fields[0] == "tool":
			m.tools = append(m.tools, fields[1])
		}
	}
	return m
}
