package zurl

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// VersionKind is the kind of a [Version].
type VersionKind uint8

const (
	// noVersion is the default of the database: its newest state or its main
	// branch.
	noVersion VersionKind = iota
	// generation is a number, of ocdbt.
	generation
	// Time is a time, of ocdbt and zarrdb.
	Time
	// Branch is the head of a branch, of icechunk and zarrdb.
	Branch
	// Tag is a tag, of icechunk and zarrdb.
	Tag
	// id is a snapshot of icechunk, or any other name of a commit of zarrdb.
	id
)

// Version is the meaning of the "@version" of ocdbt, icechunk and zarrdb.
type Version struct {
	Kind VersionKind
	// Name is the name of the branch or tag, the id, the decimal number of the
	// generation, or the time as RFC 3339 writes it.
	Name string
}

// parseVersion reads the text between "@" and the next slash, and returns its
// canonical form.
func parseVersion(scheme, raw string) (string, error) {
	s, err := unescape(raw, "?#")
	if err != nil {
		return "", err
	}
	v := versionOf(scheme, s)
	switch {
	case v.Kind == noVersion:
		return "", fmt.Errorf("%q is not a version of %s", "@"+s, scheme)
	case v.Kind == generation:
		return "v" + v.Name, nil
	}
	return s, nil
}

// versionOf returns the meaning of a version for a scheme; NoVersion without
// one.
func versionOf(scheme, s string) Version {
	if n, ok := strings.CutPrefix(s, "v"); ok && scheme == "ocdbt" {
		if g, err := strconv.ParseUint(n, 10, 64); err == nil {
			return Version{generation, strconv.FormatUint(g, 10)}
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, s); err == nil && scheme != "icechunk" {
		return Version{Time, s}
	}
	if scheme == "ocdbt" {
		return Version{}
	}
	if name, ok := strings.CutPrefix(s, "branch."); ok && name != "" {
		return Version{Branch, name}
	}
	if name, ok := strings.CutPrefix(s, "tag."); ok && name != "" {
		return Version{Tag, name}
	}
	if s == "" || scheme == "icechunk" && !isID(s) {
		return Version{}
	}
	return Version{id, s}
}

func isID(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return true
}
