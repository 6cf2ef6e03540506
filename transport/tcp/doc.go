// Package tcp moves bytes over Mooncake's TCP data plane, versions 1 and 2, in both roles (wire spec,
// section 4; what moonpath adds is in docs/reference/wire-extension.md).
//
// As initiator a route keeps a bounded set of long-lived connections to one peer, its lanes. The first is
// kept for small requests, so that they do not wait behind bulk payload. A lane pulls chunks from the route's
// source while its window has room, sends headers and payloads of many requests with one vectored write, and
// scatters many answers with one vectored read straight into registered memory. One more connection, opened
// when needed and one request at a time, serves what a published peer may answer by closing: memory that it
// has not published, and requests that were under way when a connection broke.
//
// As target it serves small requests that come one at a time in the goroutine that accepts, and everything else
// with one goroutine per connection: headers and small payloads through a bounce buffer, the rest of a
// large payload straight into place. Every request is checked against the live registrations, and the region is
// leased while its bytes flow.
//
// Files, in the order of a request's life: tcp.go (transport), dial.go (connection and identity), route.go
// (lanes and who works), lane.go, send.go, receive.go (a pipelined lane), serial.go (one at a time), broken.go
// (what becomes of requests when a connection ends), trial.go (which of them was the reason), watch.go, silence.go
// (time limits); accept.go, front.go, serve.go (target).
//
// Goroutines: two per lane in use, one for the serial connection, one watcher per transport, one accepting,
// one per inbound connection that is busier than that, and for a moment one that asks whether a silent peer is
// alive. None per request. Files that start them carry the mark moonpath:goroutines.
package tcp
