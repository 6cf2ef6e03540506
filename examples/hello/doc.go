// Command hello writes a greeting into the memory of another engine and reads it back. Both engines run in this
// process and are reached by name, as on two machines. It takes no arguments.
//
// The whole of it is in main.go. It starts no goroutines of its own; each engine ends with Close.
package main
