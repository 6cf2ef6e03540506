package moonpath_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// crossing are the packages whose exported functions' errors the facade hands on.
var crossing = []string{".", "multi", "segment", "mem", "metadata/p2p", "transport/local", "transport/tcp"}

// TestR_OBS_2_NoBareErrorCrossesTheFacade reads the source: an exported function that returns what the standard library
// or the system said, or a new error, gives a reader no code, no peer and no next step. Faults wrap it instead.
func TestR_OBS_2_NoBareErrorCrossesTheFacade(t *testing.T) {
	functions := 0
	for _, dir := range crossing {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no source in %s: %v", dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range bareErrors(file, &functions) {
				t.Errorf("%s: returns an error that is no fault: wrap it as the Cause of an *xfer.Fault", set.Position(at))
			}
		}
	}
	if functions < 60 {
		t.Errorf("only %d exported functions return errors: the search is broken", functions)
	}
}

// bareErrors finds the returns of exported functions that hand on an error from outside the module.
func bareErrors(file *ast.File, functions *int) (found []token.Pos) {
	outside := outsideImports(file)
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || !f.Name.IsExported() || f.Body == nil || !returnsError(f) || slices.Contains([]string{"Unwrap", "UnmarshalText"}, f.Name.Name) {
			continue
		}
		*functions++
		bare := make(map[string]bool) // variables that hold what came from outside, as assigned last
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.AssignStmt:
				from := len(n.Rhs) == 1 && isOutside(n.Rhs[0], outside, bare)
				for _, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok {
						bare[id.Name] = from
					}
				}
			case *ast.ReturnStmt:
				if len(n.Results) > 0 && isOutside(n.Results[len(n.Results)-1], outside, bare) {
					found = append(found, n.Pos())
				}
			}
			return true
		})
	}
	return found
}

// outsideImports are the names under which a file knows packages of other modules.
func outsideImports(file *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || strings.HasPrefix(path, "github.com/moonpath-io/moonpath") {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

func returnsError(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) == 0 {
		return false
	}
	last, ok := f.Type.Results.List[len(f.Type.Results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

// isOutside reports whether an expression is an error of another module: a call into it, or a variable that holds the
// result of one. Joining and wrapping keep the faults that are inside.
func isOutside(e ast.Expr, outside, bare map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return bare[e.Name]
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok || !outside[pkg.Name] {
			return false
		}
		switch pkg.Name + "." + sel.Sel.Name {
		case "errors.Join":
			return slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return isOutside(a, outside, bare) })
		case "fmt.Errorf":
			format, ok := e.Args[0].(*ast.BasicLit)
			return !ok || !strings.Contains(format.Value, "%w")
		}
		return true
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && outside[pkg.Name] && strings.HasPrefix(e.Sel.Name, "E") // io.EOF, unix.EINVAL
	}
	return false
}

func TestBareErrorsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`return errors.New("x")`:                             1,
		`return fmt.Errorf("x %v", 1)`:                       1,
		`return fmt.Errorf("x: %w", e.checkOpen())`:          0,
		`return unix.Munmap(b)`:                              1,
		`err := unix.Munmap(b); return err`:                  1,
		`err := unix.Munmap(b); err = wrap(err); return err`: 0,
		`return errors.Join(e.Close(), unix.Munmap(b))`:      1,
		`return errors.Join(e.Close(), e.Free())`:            0,
		`return io.EOF`:                                      1,
		`return &xfer.Fault{Cause: unix.Munmap(b)}`:          0,
		`f := func() error { return io.EOF }; return f()`:    0,
	} {
		source := "package p\nimport (\n\"errors\"\n\"fmt\"\n\"io\"\n\"golang.org/x/sys/unix\"\n)\nfunc F() error { " + body + " }\nfunc g() error { return io.EOF }"
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		functions := 0
		if got := len(bareErrors(file, &functions)); got != want || functions != 1 {
			t.Errorf("%s: %d found in %d functions, want %d in one", body, got, functions, want)
		}
	}
}
