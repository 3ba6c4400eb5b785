package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/zurl"
)

// A process has one environment: a command that it runs for another process
// could use other servers, keys or time zones than the process in which it was
// typed. A command that depends on a variable, or follows a reference to another machine
// that does, is refused if the two processes have different values.

// schemeOfURL finds the schemes of URLs, zonelessArgument a time of day or date without
// a zone.
var (
	schemeOfURL      = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*)://`)
	zonelessArgument = regexp.MustCompile(`(?:^|[={])\d{4}-\d\d-\d\d(?:[ T][\d:.]+)?(?:}|$)`)
)

// The variables that clients of other machines read; a star stands for any end of a
// name. Files of settings and keys are those that the variables name, or lie below HOME.
var (
	networkVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_DIR", "SSL_CERT_FILE"}
	schemeVariables  = map[string][]string{
		"s3":    {"HOME", "AWS_*"},
		"gs":    {"HOME", "APPDATA", "GCE_*", "GOOGLE_*", "CLOUDSDK_*", "NO_GCE_CHECK", "STORAGE_EMULATOR_HOST"},
		"http":  {"HOME", "NETRC", "ZARRDB_TOKEN_*"},
		"https": {"HOME", "NETRC", "ZARRDB_TOKEN_*"},
	}
	// grantVariables say where a user's allowed prefixes of references are.
	grantVariables = []string{"HOME", "XDG_CONFIG_HOME", "AppData"}
)

// unlike returns an error if a command depends on a variable that has another value
// in this process than where the command was typed. References that the command follows
// are compared when they are opened; see [caller.unlikeReference].
func (c caller) unlike(args []string) error {
	var names []string
	for _, arg := range args {
		for _, found := range schemeOfURL.FindAllStringSubmatch(arg, -1) {
			if of, ok := schemeVariables[zurl.Scheme(found[1])]; ok {
				names = slices.Concat(names, networkVariables, of)
			}
		}
		if zonelessArgument.MatchString(arg) {
			names = append(names, "TZ")
		}
	}
	return c.differing("run this command", names)
}

// unlikeReference is unlike for a URL that a reference leads to. Files of this machine
// depend on no variable.
func (c caller) unlikeReference(url string) error {
	found := schemeOfURL.FindStringSubmatchIndex(url)
	if found == nil || found[0] != 0 {
		return nil
	}
	of, ok := schemeVariables[zurl.Scheme(url[:found[3]])]
	if !ok {
		return nil
	}
	return c.differing("follow this reference", slices.Concat(networkVariables, of, grantVariables))
}

// differing returns an error if one of the named variables has another value here.
func (c caller) differing(what string, names []string) error {
	if c.env == nil {
		return nil
	}
	var differs []string
	ours, theirs := variables(os.Environ()), variables(c.env)
	for _, env := range []map[string]string{ours, theirs} {
		for name := range env {
			named := slices.ContainsFunc(names, func(n string) bool {
				prefix, open := strings.CutSuffix(n, "*")
				return n == name || open && strings.HasPrefix(name, prefix)
			})
			a, inOurs := ours[name]
			b, inTheirs := theirs[name]
			if named && (a != b || inOurs != inTheirs) {
				differs = append(differs, name)
			}
		}
	}
	if len(differs) == 0 {
		return nil
	}
	slices.Sort(differs)
	return fmt.Errorf("process %d has the database open and would %s, but has other values of %s; end that process first, or use the same values",
		os.Getpid(), what, strings.Join(slices.Compact(differs), ", "))
}

// variables are those of an environment.
func variables(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, v := range env {
		if name, value, ok := strings.Cut(v, "="); ok {
			m[name] = value
		}
	}
	return m
}

// zone is the time zone that times are shown in.
func (c caller) zone() *time.Location {
	ours, inOurs := os.LookupEnv("TZ")
	theirs, inTheirs := variables(c.env)["TZ"]
	if c.env == nil || ours == theirs && inOurs == inTheirs {
		return time.Local
	}
	if !inTheirs {
		if b, err := os.ReadFile("/etc/localtime"); err == nil {
			if l, err := time.LoadLocationFromTZData("Local", b); err == nil {
				return l
			}
		}
		return time.UTC
	}
	l, err := time.LoadLocation(strings.TrimPrefix(theirs, ":"))
	if err != nil {
		return time.UTC // as Go does with TZ itself
	}
	return l
}
