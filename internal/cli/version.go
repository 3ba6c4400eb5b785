package cli

import (
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// versionText is what version and --version print after "zarrdb version ". A template for another
// text would link text/template, and with it every exported method of all types: 6 MB.
func versionText() string {
	return fmt.Sprintf("%s, database format %d, pack format %d", version(), txn.Format, txn.PackFormat)
}

// version is the number of the release, and the beginning of the commit that the program was built
// from if it was built in a checkout.
func version() string {
	number, rest, _ := strings.Cut(local.Version(), " ")
	revision, _, _ := strings.Cut(rest, " ")
	if len(revision) == 40 {
		revision = revision[:10]
	}
	return strings.TrimSpace(number + " " + revision)
}
