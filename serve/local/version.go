package local

import (
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Number is the version of this release. Everything else that has a version of zarrdb derives it from
// this line: the program, the archives, and the Python package.
const Number = "0.1.0"

// Version identifies the build of this module: [Number], and, separated by blanks, the revision that it was built
// from, its time, and "true" if files were changed, or the version of the module, as far as they are known.
var Version = sync.OnceValue(func() string {
	version := Number
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	const path = "github.com/zarrdb/zarrdb"
	module := &info.Main
	if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path }); i >= 0 {
		module = info.Deps[i]
	} else {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.time" || s.Key == "vcs.modified" && s.Value == "true" {
				version += " " + s.Value
			}
		}
	}
	if version == Number && module.Version != "v"+Number && strings.HasPrefix(module.Version, "v") {
		version += " " + module.Version
	}
	return version
})
