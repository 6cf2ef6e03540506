package repolint

import "go/ast"

func checkGoroutines(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if f.test || below(f.dir, "cmd", "tools", "interop") || f.has(goroutineMarker) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				fs = append(fs, f.at(n.Pos(), "a go statement in a file without %s", goroutineMarker))
			case *ast.CallExpr:
				// sync.WaitGroup and errgroup.Group start one by a method of this name.
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
					fs = append(fs, f.at(n.Pos(), "a call of a Go method, which starts a goroutine, in a file without %s", goroutineMarker))
				}
			}
			return true
		})
	}
	return fs
}
