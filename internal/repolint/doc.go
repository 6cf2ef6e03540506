// Package repolint checks the rules of this repository that no general linter knows: which package may import which,
// who may read the environment, start goroutines or use unsafe, and that documents name what exists.
//
// It is a package of tests: "go test ./internal/repolint" reads the sources of the module with go/parser and reports
// each violation with the reason for the rule. Nothing imports it.
//
// Invariants: a rule is a pure function of a tree of files, so that it is tested with planted files; every rule has
// a planted violation that it must find and a neighbour that it must leave alone.
//
// Goroutines: none.
package repolint
