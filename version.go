package moonpath

import "runtime/debug"

// version is what this source tree is.
const version = "0.1.0-dev"

// Version returns the version of the engine, with the revision it was built from where that is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return version + "+" + s.Value[:12]
		}
	}
	return version
}
