// Package vectors reads byte sequences for tests out of Markdown files, so that
// test data can be read by people, and documents can be compared with the code.
//
// A vector is a fenced block whose info string is "hex" and a name. It holds hex
// digits in pairs, separated by white space; # starts a comment that ends with
// the line. A block "json" and a name holds one line of text, taken as it is,
// with its newline. Other blocks are ignored.
//
// Only tests import it. It starts no goroutine.
package vectors
