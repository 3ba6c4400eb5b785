package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/zarrdb/zarrdb/txn"
)

// versionText is the output of version and --version.
func versionText() string {
	return fmt.Sprintf("zarrdb %s, database format %d, pack format %d", version(), txn.Format, txn.PackFormat)
}

// version is the module version that the program was built from, or the commit
// where it was built in a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 10 {
			v += " " + s.Value[:10]
		}
	}
	return v
}
