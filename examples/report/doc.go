// Command report moves one batch over two paths, with one request that fails, and prints what became of each:
// the path, why it was taken, and why the others were not. It takes no arguments.
//
// The whole of it is in main.go. It starts no goroutines of its own; each engine ends with Close.
package main
