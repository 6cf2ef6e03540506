package repolint

import (
	"go/ast"
	"regexp"
	"slices"
)

// mayPassEnvironment are the folders that start child processes.
var mayPassEnvironment = []string{"cmd", "tools", "interop"}

func checkEnvironment(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if f.dir == "config" {
			continue
		}
		for _, pkg := range []string{"os", "syscall"} {
			f.uses(pkg, func(sel *ast.SelectorExpr) {
				switch sel.Sel.Name {
				case "Environ":
					if f.test || below(f.dir, mayPassEnvironment...) {
						return
					}
				case "Getenv", "LookupEnv", "ExpandEnv":
				default:
					return
				}
				fs = append(fs, f.at(sel.Pos(), "%s.%s; ask package config, or take the value as an argument", pkg, sel.Sel.Name))
			})
		}
	}
	return fs
}

func checkSleep(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		if !f.test {
			continue
		}
		bubbles := f.synctestCalls()
		f.uses("time", func(sel *ast.SelectorExpr) {
			inBubble := slices.ContainsFunc(bubbles, func(c *ast.CallExpr) bool { return c.Pos() <= sel.Pos() && sel.End() <= c.End() })
			if sel.Sel.Name == "Sleep" && !inBubble {
				fs = append(fs, f.at(sel.Pos(), "time.Sleep in a test"))
			}
		})
	}
	return fs
}

// synctestCalls finds the calls of synctest.Test, inside which time is not real.
func (f *goFile) synctestCalls() []*ast.CallExpr {
	name := f.localName("testing/synctest")
	var calls []*ast.CallExpr
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if sel, ok := c.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Test" {
				if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name {
					calls = append(calls, c)
				}
			}
		}
		return true
	})
	return calls
}

var rawAtomic = regexp.MustCompile(`^(Add|And|CompareAndSwap|Load|Or|Store|Swap)(Int32|Int64|Uint32|Uint64|Uintptr|Pointer)$`)

func checkRawAtomics(t *tree) []finding {
	var fs []finding
	for _, f := range t.gofiles {
		f.uses("sync/atomic", func(sel *ast.SelectorExpr) {
			// Mapped memory has no Go type, so those who map it may use the functions.
			if rawAtomic.MatchString(sel.Sel.Name) && !below(f.dir, mayUseUnsafe...) {
				fs = append(fs, f.at(sel.Pos(), "atomic.%s on a plain variable", sel.Sel.Name))
			}
		})
	}
	return fs
}
