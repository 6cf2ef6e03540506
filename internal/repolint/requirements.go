package repolint

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

const requirementsPath = "docs/compat/requirements.md"

var (
	requirementID   = regexp.MustCompile(`^R-[A-Z0-9]+-[0-9]+$`)
	requirementTest = regexp.MustCompile(`^Test(R_[A-Z0-9]+_[0-9]+)(_|$)`)
)

// checkRequirements compares the table of requirements with the tests that carry their ids.
func checkRequirements(t *tree) []finding {
	doc, ok := t.texts[requirementsPath]
	if !ok {
		return []finding{{path: requirementsPath, what: "missing"}}
	}
	tests := t.requirementTests()
	states := map[string]string{}
	var fs []finding
	bad := func(line int, format string, args ...any) {
		fs = append(fs, finding{requirementsPath, line, fmt.Sprintf(format, args...)})
	}
	for _, row := range tableRows(doc) {
		id := row.text[0]
		if !requirementID.MatchString(id) {
			continue
		}
		if len(row.text) != 4 {
			bad(row.line, "%s has %d cells, want id, demand, state, test", id, len(row.text))
			continue
		}
		if states[id] != "" {
			bad(row.line, "%s is listed twice", id)
		}
		state, test := row.text[2], row.text[3]
		states[id] = state
		switch state {
		case "done":
			if len(tests[id]) == 0 {
				bad(row.line, "%s is done, but no test is called Test%s_…", id, underscored(id))
			}
			if !strings.Contains(test, "Test"+underscored(id)) {
				bad(row.line, "%s is done, but its row does not name its test", id)
			}
		case "in work", "later":
		default:
			bad(row.line, "%s has the unknown state %q; there are done, in work and later", id, state)
		}
	}
	for id, at := range tests {
		if s := states[id]; s == "" || s == "later" {
			fs = append(fs, finding{at[0].path, at[0].line, fmt.Sprintf("%s carries %s, which %s lists as %q", at[0].what, id, requirementsPath, s)})
		}
	}
	return fs
}

// requirementTests finds the test functions that carry an id, by id.
func (t *tree) requirementTests() map[string][]finding {
	tests := map[string][]finding{}
	for _, f := range t.gofiles {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				if m := requirementTest.FindStringSubmatch(d.Name.Name); m != nil {
					id := strings.ReplaceAll(m[1], "_", "-")
					tests[id] = append(tests[id], f.at(d.Pos(), "%s", d.Name.Name))
				}
			}
		}
	}
	return tests
}

func underscored(id string) string { return strings.ReplaceAll(id, "-", "_") }
