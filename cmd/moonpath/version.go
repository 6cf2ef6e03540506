package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

type versionCmd struct{}

// Help is the part of the help that examples need.
func (*versionCmd) Help() string {
	return `Examples:

    moonpath version
    moonpath version --json`
}

type versionView struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"`
	Modified  bool   `json:"modified,omitempty"` // built from a tree that differs from the revision
	Go        string `json:"go"`
	Platform  string `json:"platform"`
	TCP       []int  `json:"tcp_protocol_versions"`
	Extension int    `json:"moonpath_extension_version"`
	Hello     int    `json:"hello_version"`
}

// Run prints the versions.
func (*versionCmd) Run(a *app) error {
	v := &versionView{
		Version: moonpath.Version(), TCP: []int{1, 2},
		Extension: segjson.ExtensionSchema, Hello: int(tcpframe.HelloVersion),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.readBuild(info)
	}
	return a.emit(v, v.text)
}

func (v *versionView) readBuild(info *debug.BuildInfo) {
	v.Go = info.GoVersion
	build := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		build[s.Key] = s.Value
	}
	v.Platform = build["GOOS"] + "/" + build["GOARCH"]
	v.Revision = build["vcs.revision"]
	v.Modified = build["vcs.modified"] == "true"
}

func (v *versionView) text(w io.Writer) {
	fmt.Fprintf(w, "moonpath\t%s\n", v.Version)
	if v.Revision != "" {
		changed := ""
		if v.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(w, "revision\t%s%s\n", v.Revision, changed)
	}
	fmt.Fprintf(w, "built with\t%s for %s\n", v.Go, v.Platform)
	fmt.Fprintf(w, "tcp protocol\tversions 1 and 2 of Mooncake's\n")
	fmt.Fprintf(w, "extension\tdescriptor version %d, hello version %d\n", v.Extension, v.Hello)
}
