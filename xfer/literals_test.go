package xfer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestR_OBS_2_EveryFaultIsBornComplete reads the source of the whole module: a fault that is made without code, stage,
// or anything that says what was wrong would reach a reader like that.
func TestR_OBS_2_EveryFaultIsBornComplete(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "bin", "build"}, entry.Name())):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for at, lacks := range incompleteFaults(file, &seen) {
			t.Errorf("%s: the fault has no %s", set.Position(at), lacks)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d faults found in the module: the search is broken", seen)
	}
}

// incompleteFaults finds the literals of a file that lack something; seen counts them all.
func incompleteFaults(file *ast.File, seen *int) map[token.Pos]string {
	found := make(map[token.Pos]string)
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || !isFault(file, lit.Type) {
			return true
		}
		*seen++
		keys := make(map[string]bool)
		for _, e := range lit.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					keys[key.Name] = true
				}
			}
		}
		var lacks []string
		for _, need := range []string{"Code", "Stage"} {
			if !keys[need] {
				lacks = append(lacks, need)
			}
		}
		if !keys["Detail"] && !keys["Cause"] {
			lacks = append(lacks, "Detail and no Cause")
		}
		if lacks != nil {
			found[lit.Pos()] = strings.Join(lacks, ", no ")
		}
		return true
	})
	return found
}

func isFault(file *ast.File, typ ast.Expr) bool {
	switch typ := typ.(type) {
	case *ast.SelectorExpr:
		pkg, ok := typ.X.(*ast.Ident)
		return ok && typ.Sel.Name == "Fault" && (pkg.Name == "xfer" || pkg.Name == "moonpath")
	case *ast.Ident:
		return typ.Name == "Fault" && (file.Name.Name == "xfer" || file.Name.Name == "moonpath")
	}
	return false
}

func TestIncompleteFaultsAreFound(t *testing.T) {
	for source, want := range map[string]string{
		`&xfer.Fault{Code: xfer.Socket, Stage: xfer.StageSend, Detail: "x"}`: "",
		`&xfer.Fault{Code: xfer.Socket, Stage: s, Cause: err}`:               "",
		`&xfer.Fault{Stage: xfer.StageSend, Detail: "x"}`:                    "Code",
		`&xfer.Fault{Code: xfer.Socket, Cause: err}`:                         "Stage",
		`xfer.Fault{Code: xfer.Socket, Stage: s, Peer: "p", Next: "n"}`:      "Detail and no Cause",
		`&moonpath.Fault{}`: "Code, no Stage, no Detail and no Cause",
		`new(xfer.Fault)`:   "",
		`&other.Fault{}`:    "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\nvar v = "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		seen, got := 0, ""
		for _, lacks := range incompleteFaults(file, &seen) {
			got = lacks
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", source, got, want)
		}
	}
}
