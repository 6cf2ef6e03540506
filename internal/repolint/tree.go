package repolint

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// modulePath is what import paths of this module begin with.
const modulePath = "github.com/moonpath-io/moonpath"

// tree is the repository as the rules see it.
type tree struct {
	gofiles []*goFile
	texts   map[string]string // every text file by path, Go files included
}

// goFile is one parsed file. Paths are relative to the root, with slashes.
type goFile struct {
	path, dir string // dir is "." for the root package
	test      bool
	fset      *token.FileSet
	ast       *ast.File
}

// finding is one violation.
type finding struct {
	path string
	line int // 0 where the whole file is meant
	what string
}

func (f finding) String() string {
	if f.line == 0 {
		return f.path + ": " + f.what
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.what)
}

// load reads the files that can be part of a commit: it leaves out what the Makefile builds.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{texts: map[string]string{}}
	var broken []error
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == "bin" || p == "build" || d.Name() == ".git" || d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(p, ".test") || strings.HasSuffix(p, ".out") {
			return nil
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil
		}
		t.texts[p] = string(text)
		if strings.HasSuffix(p, ".go") && !hidden(p) {
			if err := t.parse(p, text); err != nil {
				broken = append(broken, err)
			}
		}
		return nil
	})
	return t, errors.Join(append(broken, err)...)
}

// hidden reports whether the go command ignores a file for the name of a folder above it.
func hidden(p string) bool {
	for _, part := range strings.Split(path.Dir(p), "/") {
		if part == "testdata" || part != "." && (part[0] == '.' || part[0] == '_') {
			return true
		}
	}
	return false
}

func (t *tree) parse(p string, text []byte) error {
	f := &goFile{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), fset: token.NewFileSet()}
	var err error
	f.ast, err = parser.ParseFile(f.fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.gofiles = append(t.gofiles, f)
	return nil
}

// at makes a finding at the line of pos.
func (f *goFile) at(pos token.Pos, format string, args ...any) finding {
	return finding{path: f.path, line: f.fset.Position(pos).Line, what: fmt.Sprintf(format, args...)}
}

// imports calls use for each import.
func (f *goFile) imports(use func(path string, spec *ast.ImportSpec)) {
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			use(p, spec)
		}
	}
}

// localName is the name under which the file imports a package, or empty.
func (f *goFile) localName(importPath string) string {
	name := ""
	f.imports(func(p string, spec *ast.ImportSpec) {
		if p != importPath {
			return
		}
		name = path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
	})
	return name
}

// uses calls report for each mention of a name out of a package, as in os.Getenv.
func (f *goFile) uses(importPath string, report func(sel *ast.SelectorExpr)) {
	name := f.localName(importPath)
	if name == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				report(sel)
			}
		}
		return true
	})
}

// below reports whether a folder is one of dirs or inside one.
func below(dir string, dirs ...string) bool {
	for _, d := range dirs {
		if dir == d || strings.HasPrefix(dir, d+"/") {
			return true
		}
	}
	return false
}
