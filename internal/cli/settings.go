package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A process has one environment: a command that it runs for another process
// could use other servers, keys or time zones than the process in which it was
// typed. A command that depends on a variable is refused if the two processes
// have different values.

// remoteArgument matches a URL of another machine, zonelessArgument a time of day or
// date without a zone.
var (
	remoteArgument   = regexp.MustCompile(`(?i)(?:s3|gs|https?)://`)
	zonelessArgument = regexp.MustCompile(`(?:^|[={])\d{4}-\d\d-\d\d(?:[ T][\d:.]+)?(?:}|$)`)
)

// remoteVariables are read by clients of other machines, and so are those that begin
// with one of remotePrefixes.
var (
	remoteVariables = []string{
		"HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"NO_GCE_CHECK", "SSL_CERT_DIR", "SSL_CERT_FILE", "STORAGE_EMULATOR_HOST",
	}
	remotePrefixes = []string{"AWS_", "GCE_", "GOOGLE_", "CLOUDSDK_"}
)

// unlike returns an error if a command depends on a variable that has another value
// in this process than where the command was typed.
func (c caller) unlike(args []string) error {
	if c.env == nil {
		return nil
	}
	has := func(matches *regexp.Regexp) bool { return slices.ContainsFunc(args, matches.MatchString) }
	var differs []string
	ours, theirs := variables(os.Environ()), variables(c.env)
	note := func(name string) {
		a, inOurs := ours[name]
		b, inTheirs := theirs[name]
		if (a != b || inOurs != inTheirs) && !slices.Contains(differs, name) {
			differs = append(differs, name)
		}
	}
	if has(remoteArgument) {
		for _, name := range remoteVariables {
			note(name)
		}
		for _, all := range []map[string]string{ours, theirs} {
			for name := range all {
				if slices.ContainsFunc(remotePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
					note(name)
				}
			}
		}
	}
	if has(zonelessArgument) {
		note("TZ")
	}
	if len(differs) == 0 {
		return nil
	}
	slices.Sort(differs)
	return fmt.Errorf("process %d has the database open and would run this command, but has other values of %s; end that process first, or use the same values",
		os.Getpid(), strings.Join(differs, ", "))
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
