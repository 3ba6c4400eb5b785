package zurl

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Resolve resolves a relative pipeline against an absolute base: its path
// applies to the path of the base's last sub-URL as in any URL, and its
// adapters are appended. If it begins with "..:", it first takes adapters away;
// if it begins with a scheme, it is absolute and returned unchanged. A path
// without a scheme is never a path of the file system.
func Resolve(base, relative string) (string, error) {
	u, err := Parse(base)
	if err == nil {
		u, err = u.Resolve(relative)
	}
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Resolve is the function Resolve for a base that was parsed.
func (u URL) Resolve(relative string) (URL, error) {
	head, adapters, more := strings.Cut(relative, "|")
	if _, _, ok := cutScheme(head); ok {
		return Parse(relative)
	}
	var err error
	if path, ok := strings.CutPrefix(head, parent+":"); ok {
		u, err = u.up(path)
	} else {
		u, err = u.apply(head)
	}
	if err != nil {
		return URL{}, &Error{URL: relative, Part: head, Err: err}
	}
	if !more {
		return u, nil
	}
	return u.extend(relative, adapters)
}

// apply changes the last path by an absolute or relative one. An empty one
// changes nothing.
func (u URL) apply(text string) (URL, error) {
	if text == "" {
		return u, nil
	}
	var err error
	out := u.change(func(p *Part) { err = p.apply(text) })
	return out, err
}

func (p *Part) apply(text string) error {
	known := schemes[p.Scheme]
	if known.syntax == noPath || known.syntax == byteRange {
		return fmt.Errorf("%s: has no path that another could be relative to", p.Scheme)
	}
	if known.web {
		var err error
		text, p.Query, _ = strings.Cut(text, "?")
		if p.Query, err = reescape(p.Query, inQuery, "#"); err != nil || text == "" {
			return err
		}
	}
	first, _, _ := strings.Cut(text, "/")
	switch {
	case strings.HasPrefix(text, "//"):
		return errors.New("a path that begins with //")
	case strings.IndexByte(first, ':') >= 0:
		return fmt.Errorf("a colon in the first name; write %s", quote("./"+text))
	}
	base, err := p.decode(p.Path)
	if err != nil {
		return err
	}
	rooted, isRooted := strings.CutPrefix(text, "/")
	if isRooted {
		base, text = p.root(base), rooted
	}
	path, err := p.decode(text)
	if err != nil {
		return err
	}
	return p.join(base, path)
}

// root returns the path of the root: a slash where all paths begin with one.
func (p *Part) root(path string) string {
	if strings.HasPrefix(path, "/") || schemes[p.Scheme].syntax == pointer {
		return "/"
	}
	return ""
}

// set sets the path to the path of a URL.
func (p *Part) set(text string) error {
	path, err := p.decode(text)
	if err != nil {
		return err
	}
	if schemes[p.Scheme].syntax == pointer {
		p.Path = escape(path, inPath)
		return checkPointer(path)
	}
	root := ""
	if strings.HasPrefix(text, "/") { // of a root; paths of adapters lose the slash
		root, path = "/", path[1:]
	}
	return p.join(root, path)
}

// decode returns the path as its scheme understands it.
func (p *Part) decode(text string) (string, error) {
	if schemes[p.Scheme].web {
		return reescape(text, inPath, "#")
	}
	path, err := unescape(text, "?#")
	if err == nil && p.Scheme == "file" && strings.Count(path, "/") != strings.Count(text, "/") {
		err = errors.New("an escaped slash, which no file name has")
	}
	return path, err
}

// join replaces the part of base behind the last slash by a decoded path.
func (p *Part) join(base, path string) error {
	dir := base[:strings.LastIndexByte(base, '/')+1]
	known := schemes[p.Scheme]
	full, err := p.clean(dir, path, known.web)
	switch {
	case err != nil:
		return err
	case known.web:
		p.Path = full
		return nil
	}
	p.Path = escape(full, inPath)
	// Characters with another meaning are escaped.
	switch {
	case known.syntax == pointer:
		return checkPointer(full)
	case p.Scheme == "file" || p.Host != "" || full == "":
	case known.root && strings.HasPrefix(full, "//"):
		p.Path = "/%2F" + p.Path[2:]
	case known.root:
	case full[0] == '/':
		p.Path = "%2F" + p.Path[1:]
	case full[0] == '@' && known.syntax == versioned && p.Version == "":
		p.Path = "%40" + p.Path[1:]
	}
	return nil
}

// clean appends path to dir, which is empty or ends in a slash, and carries out
// its "." and "..". With stay, ".." of the root is the root.
func (p *Part) clean(dir, path string, stay bool) (string, error) {
	root := ""
	if strings.HasPrefix(dir, "/") {
		root = "/"
	}
	b := []byte(dir)
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, "/")
		switch {
		case name == ".":
		case name == "..":
			if len(b) == len(root) {
				if !stay {
					return "", errAboveRoot
				}
				break
			}
			b = b[:bytes.LastIndexByte(b[:len(b)-1], '/')+1]
		default:
			b = append(b, name...)
			if more {
				b = append(b, '/')
			}
		}
	}
	return string(b), nil
}

// checkPointer checks a JSON pointer (RFC 6901).
func checkPointer(s string) error {
	if s != "" && s[0] != '/' {
		return errors.New("a JSON pointer begins with a slash")
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return errors.New("a ~ in a JSON pointer is written ~0")
		}
	}
	return nil
}
