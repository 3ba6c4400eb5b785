package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/engine/zurl"
)

// followFlags are the flags of every command that may follow references.
type followFlags struct {
	urlMap, allow []string
}

func (f *followFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.urlMap, "url-map", nil, "read references below one URL from another, `FROM=TO` (repeatable)")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "follow references below this URL or folder, `PREFIX` (repeatable)")
}

// follow returns the options of the flags.
func (f *followFlags) follow() (o engine.Follow, err error) {
	for _, s := range f.urlMap {
		from, to, ok := strings.Cut(s, "=")
		if !ok || from == "" || to == "" {
			return o, usagef("--url-map %s: FROM=TO is due", zurl.Redact(s))
		}
		m := engine.Mapping{}
		if m.From, err = prefixURL(from); err != nil {
			return o, usagef("--url-map %s: %w", zurl.Redact(from), err)
		}
		if m.To, err = prefixURL(to); err != nil {
			return o, usagef("--url-map %s: %w", zurl.Redact(to), err)
		}
		o.Map = append(o.Map, m)
	}
	for _, s := range f.allow {
		if s == "" {
			return o, usagef("--allow: no URL or folder; . is the current one")
		}
		p, err := prefixURL(s)
		if err != nil {
			return o, usagef("--allow %s: %w", zurl.Redact(s), err)
		}
		o.Allow = append(o.Allow, p)
	}
	return o, nil
}

// prefixURL converts a prefix to the form of reference sets: a path becomes that
// of a local folder, a file: URL is decoded, others are not changed.
func prefixURL(s string) (string, error) {
	if rootURL.MatchString(s) && !strings.HasPrefix(strings.ToLower(s), "file:") {
		return s, nil
	}
	if !rootURL.MatchString(s) {
		abs, err := filepath.Abs(s)
		if err != nil {
			return "", err
		}
		s = filepath.ToSlash(abs)
		if !strings.HasPrefix(s, "/") {
			s = "/" + s
		}
		return "file://" + s, nil
	}
	return source.PlainURL(s)
}
