package main

import (
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// build is what a binary knows of its making.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"` // there were changes that no revision has
	Go       string `json:"go"`
}

// Run prints the version.
func (*versionCmd) Run(in *invocation) error {
	b := thisBuild()
	return say(in, b, "waybill", b.Version, b.Go)
}

func thisBuild() build {
	b := build{Version: "dev", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
