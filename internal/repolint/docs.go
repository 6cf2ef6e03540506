package repolint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

func checkPackageDocs(t *tree) []finding {
	var fs []finding
	seen := map[string]bool{}
	for _, f := range t.gofiles {
		if seen[f.dir] {
			continue
		}
		seen[f.dir] = true
		fs = append(fs, t.checkDocFile(f.dir)...)
	}
	return fs
}

func (t *tree) checkDocFile(dir string) []finding {
	docGo := path.Join(dir, "doc.go")
	for _, f := range t.gofiles {
		if f.path != docGo {
			continue
		}
		name := f.ast.Name.Name
		starts := []string{"Package " + name}
		if name == "main" { // the two ways in which the Go project writes it
			name = path.Base(dir)
			starts = []string{"Command " + name, strings.ToUpper(name[:1]) + name[1:]}
		}
		begins := func(start string) bool { return strings.HasPrefix(f.ast.Doc.Text(), start+" ") }
		if !slices.ContainsFunc(starts, begins) {
			return []finding{f.at(f.ast.Package, "its package comment must start with %q", starts[0])}
		}
		return nil
	}
	return []finding{{path: docGo, what: "missing"}}
}

func checkExportedComments(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) && !saysItself(d) && !startsWith(d.Doc, d.Name.Name) {
					fs = append(fs, f.at(d.Pos(), "%s needs a comment that starts with its name", d.Name.Name))
				}
			case *ast.GenDecl:
				fs = append(fs, f.checkDecl(d)...)
			}
		}
	}
	return fs
}

// checkDecl checks types by name; constants and variables may share the comment of their group.
func (f *goFile) checkDecl(d *ast.GenDecl) []finding {
	var fs []finding
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if s.Name.IsExported() && !startsWith(doc, s.Name.Name) && !(doc == nil && s.Comment != nil) {
				fs = append(fs, f.at(s.Pos(), "%s needs a comment that starts with its name", s.Name.Name))
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			for _, n := range s.Names {
				if n.IsExported() {
					fs = append(fs, f.at(n.Pos(), "%s %s needs a comment, its own or its group's", d.Tok, n.Name))
				}
			}
		}
	}
	return fs
}

// saysItself reports whether a method is one of those whose meaning the standard library lays down.
func saysItself(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap"}, d.Name.Name)
}

// receiverExported reports whether a function is reachable from outside: it has no receiver, or one of exported type.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	x := d.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// startsWith reports whether the first word of a comment is name, an article before it aside.
func startsWith(doc *ast.CommentGroup, name string) bool {
	words := strings.Fields(doc.Text())
	if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	return len(words) > 0 && strings.TrimRight(words[0], ",.:;") == name
}

func checkAllocTests(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if !f.test || f.constrained("!race") {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(d.Name.Name, "TestAllocs") {
				fs = append(fs, f.at(d.Pos(), "%s in a file without //go:build !race", d.Name.Name))
			}
		}
	}
	return fs
}

// constrained reports whether the build constraint of the file demands term.
func (f *goFile) constrained(term string) bool {
	for _, g := range f.ast.Comments {
		if g.Pos() > token.Pos(f.ast.Package) {
			break
		}
		for _, c := range g.List {
			if expr, ok := strings.CutPrefix(c.Text, "//go:build "); ok {
				for _, part := range strings.Split(expr, "&&") {
					if strings.TrimSpace(part) == term {
						return true
					}
				}
			}
		}
	}
	return false
}
