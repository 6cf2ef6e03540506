package main

import (
	"fmt"
	"io"

	"github.com/moonpath-io/moonpath"
)

type notifyCmd struct {
	Segment string `arg:"" name:"segment" help:"The segment: HOST:PORT of the peer's control port."`
	Name    string `name:"name" required:"" placeholder:"NAME" help:"Name of the notification: any text, which tells the peer what it is about."`
	Text    string `name:"text" default:"" placeholder:"TEXT" help:"Its text."`
	Host    string `name:"host" default:"127.0.0.1" help:"Address of the tool's own engine; it binds no other."`
}

// Help is the part of the help that examples need.
func (*notifyCmd) Help() string {
	return `The peer keeps it until its program asks for notifications; moonpath target logs them. Success means that the
peer has taken it.

Example:

    moonpath notify 127.0.0.1:15123 --name step --text 'layer 3 is written'`
}

type notifyResult struct {
	Segment string `json:"segment"`
	Name    string `json:"name"`
	Text    string `json:"text"`
}

// Run sends the notification.
func (c *notifyCmd) Run(a *app) error {
	return a.withPeer(peerFlags{Segment: c.Segment, Host: c.Host}, func(p *peer) error {
		if err := p.engine.SendNotify(p.id, moonpath.Notify{Name: c.Name, Text: c.Text}); err != nil {
			return err
		}
		return a.emit(notifyResult{c.Segment, c.Name, c.Text}, func(w io.Writer) {
			fmt.Fprintf(w, "%s has taken the notification %q\n", c.Segment, c.Name)
		})
	})
}
