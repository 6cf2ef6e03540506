// Package moonpath is a transfer engine: it moves bytes between registered memory of processes and hosts,
// speaks Mooncake's wire protocols in both roles, chooses the path of every request and can say why.
//
// An Engine owns one segment, the set of its registered buffers, under a name of the form host:port. To move
// bytes, register local memory, open the peer's segment by name, and submit requests:
//
//	e, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1"})
//	memory, err := e.Alloc(1<<20, moonpath.AllocOptions{})
//	target, err := e.OpenSegment("127.0.0.1:15123")
//	err = e.Write(ctx, target, memory.At(0), remoteAddress, 1<<20)
//
// Mooncake's verbs (RegisterLocalMemory, SubmitTransfer, GetTransferStatus, …) stand beside Go's forms (Alloc,
// Batch.Submit, Batch.Wait, …); both act on the same engine, and numbers of states and codes are Mooncake's.
//
// The engine never reads or writes local memory of a task that has ended. Errors are *Fault values: code,
// stage, path, peer, cause and what to do next; test codes with errors.Is.
//
// The package is thin: package multi plans and queues, the packages under transport move bytes, those under
// metadata find peers. Goroutines are a function of peers and connections, never of requests.
package moonpath
