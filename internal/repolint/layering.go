package repolint

import (
	"go/ast"
	"path"
	"strings"
)

// row is a line of the table of layers: packages in it import from rows below only.
type row struct {
	number int
	dirs   []string // a folder, or the packages right below one when it ends with "/*"
}

// layers is the table. The first row that names a folder itself wins over one that names its parent.
var layers = []row{
	{7, []string{"cmd/*", "examples/*", "interop", "interop/*", "tools/*"}},
	{6, []string{"."}},
	{5, []string{"multi", "doctor", "report", "transport/all"}},
	{4, []string{"selector", "transport/*", "metadata/*"}},
	{3, []string{"transport"}},
	{2, []string{"segment", "mem", "topo"}},
	{1, []string{"wire/*", "obs", "config", "internal/*"}},
	{0, []string{"xfer"}},
}

// edges are the imports inside a row that are allowed, each with its reason.
var edges = map[[2]string]string{
	{"wire/ctrlframe", "wire/jsoncpp"}: "a frame without a type is told by the JSON in it",
	{"wire/segjson", "wire/jsoncpp"}:   "descriptors and messages share one form of JSON text",
	{"wire/handshake", "wire/jsoncpp"}: "descriptors and messages share one form of JSON text",
}

// testEdges are those that only tests may use.
var testEdges = map[[2]string]string{
	{"wire/handshake", "wire/ctrlframe"}: "messages are tested inside the frames that carry them",
	{"wire/segjson", "wire/ctrlframe"}:   "descriptors are tested inside the frames that carry them",

	{"transport/transporttest", "transport/local"}: "the suite is tested with defects that are put into a whole transport",
}

// testKits help to test packages of their own row; only tests import them across it.
var testKits = []string{"internal/faultnet", "internal/invariants", "transport/fake", "transport/fault", "transport/transporttest"}

// rowOf finds the row of a folder.
func rowOf(dir string) (int, bool) {
	for _, want := range []string{dir, path.Dir(dir) + "/*"} {
		for _, l := range layers {
			for _, d := range l.dirs {
				if d == want {
					return l.number, true
				}
			}
		}
	}
	// A folder further down belongs to its parent's row.
	if d := path.Dir(dir); d != "." {
		return rowOf(d)
	}
	return 0, false
}

func checkLayering(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		from, ok := rowOf(f.dir)
		if !ok {
			fs = append(fs, f.at(f.ast.Package, "folder %s is in no row of the table of layers; give it one in internal/repolint/layering.go", f.dir))
			continue
		}
		f.imports(func(p string, spec *ast.ImportSpec) {
			to, ours := strings.CutPrefix(p, modulePath+"/")
			if p == modulePath {
				to, ours = ".", true
			}
			if !ours {
				if from == 0 && strings.Contains(strings.Split(p, "/")[0], ".") {
					fs = append(fs, f.at(spec.Pos(), "%s imports %s; row 0 uses the standard library only", f.dir, p))
				}
				return
			}
			toRow, ok := rowOf(to)
			switch {
			case !ok:
				fs = append(fs, f.at(spec.Pos(), "%s imports %s, which is in no row of the table of layers", f.dir, to))
			case to == f.dir || toRow < from || toRow == from && allowedInRow(f, to):
			default:
				fs = append(fs, f.at(spec.Pos(), "%s (row %d) imports %s (row %d)", f.dir, from, to, toRow))
			}
		})
	}
	return fs
}

func allowedInRow(f *goFile, to string) bool {
	edge := [2]string{f.dir, to}
	if edges[edge] != "" || f.test && (testEdges[edge] != "" || below(to, testKits...)) {
		return true
	}
	if parent, _, ok := strings.Cut(to, "/internal/"); ok {
		return below(f.dir, parent) // the go command sees to the rest
	}
	return below(f.dir, "interop") && below(to, "interop")
}
