package icechunk

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

// containers are the virtual chunk containers of a repository: the names that stand
// for the beginnings of URLs. They are read when the first name is met. nil has none.
type containers struct {
	read func() (map[string]string, error) // URL prefix by name

	once  sync.Once
	named map[string]string
	err   error
}

// relative begins URLs whose host is the name of a container: vcc://NAME/path.
const relative = "vcc://"

// expand returns the absolute URL of a virtual chunk.
func (c *containers) expand(url string) (string, error) {
	rest, ok := strings.CutPrefix(url, relative)
	if !ok {
		return url, nil
	}
	name, path, ok := strings.Cut(rest, "/")
	if !ok || name == "" {
		return "", formats.Invalid("%q names no virtual chunk container", url)
	}
	if c == nil {
		return "", formats.Invalid("the repository has no virtual chunk container %q", name)
	}
	c.once.Do(func() { c.named, c.err = c.read() })
	if c.err != nil {
		return "", c.err
	}
	prefix, ok := c.named[name]
	if !ok {
		return "", formats.Invalid("the repository has no virtual chunk container %q", name)
	}
	return strings.TrimRight(prefix, "/") + "/" + path, nil
}

// plainLocation spells the location of a virtual chunk as references do. Icechunk's is a
// URL: the path is percent-encoded, and a query or fragment does not count. References
// have paths without escapes, except for http and https, whose paths stay as they are.
func plainLocation(location string) (string, error) {
	root, path := cutLocation(location)
	if path == "" {
		return location, nil
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) { // a "%" that begins no escape stands for itself
			if n, err := hex.DecodeString(path[i+1 : i+3]); err == nil {
				c, i = n[0], i+2
			}
		}
		b = append(b, c)
	}
	if !utf8.Valid(b) {
		return "", formats.Invalid("the path of the chunk location %q is not UTF-8", location)
	}
	return root + string(b), nil
}

// escapedLocation is the reverse of plainLocation.
func escapedLocation(plain string) string {
	root, path := cutLocation(plain)
	return root + strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
}

// cutLocation splits a URL before its path. The path is empty for http and https.
func cutLocation(location string) (root, path string) {
	scheme, rest, _ := strings.Cut(location, "://")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 || scheme == "http" || scheme == "https" {
		return location, ""
	}
	slash += len(location) - len(rest)
	return location[:slash], location[slash:]
}

// configKey is the settings of a repository of version 1, as YAML.
const configKey = "config.yaml"

// maxConfig is how long settings may be.
const maxConfig = 1 << 20

// containersOf1 reads the containers of a repository of version 1.
func containersOf1(ctx context.Context, dir kv.Reader) (map[string]string, error) {
	b, err := readBounded(ctx, dir, configKey, maxConfig)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseConfig(b)
}

// parseConfig finds the containers in settings: the members of
// virtual_chunk_containers, each a map with name and url_prefix. It reads JSON, and
// the part of YAML that Icechunk writes: maps of one member a line.
func parseConfig(b []byte) (map[string]string, error) {
	type container struct {
		Name   *string `json:"name"`
		Prefix string  `json:"url_prefix"`
	}
	found := map[string]string{}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		var config struct {
			Containers map[string]container `json:"virtual_chunk_containers"`
		}
		if err := json.Unmarshal(b, &config); err != nil {
			return nil, formats.Invalid("%s: %v", configKey, err)
		}
		for _, c := range config.Containers {
			if c.Name != nil {
				found[*c.Name] = c.Prefix
			}
		}
		return found, nil
	}
	inside, depth := false, 0 // depth is the indentation of the members of containers
	name, prefix := "", ""
	flush := func() {
		if name != "" {
			found[name] = prefix
		}
		name, prefix = "", ""
	}
	for line := range strings.Lines(string(b)) {
		text := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if text == "" || text[0] == '#' || text == "---" {
			continue
		}
		if indent == 0 {
			flush()
			key, value := member(text)
			inside = key == "virtual_chunk_containers"
			if inside && strings.HasPrefix(value, "{") && value != "{}" {
				return nil, formats.Unsupported("virtual chunk containers of %s on one line", configKey)
			}
			continue
		}
		if !inside {
			continue
		}
		if name == "" && prefix == "" || indent < depth {
			depth = 0
		}
		switch key, value := member(text); {
		case depth > 0 && indent > depth: // settings of the store
		case key == "name" && value != "null" && value != "~":
			if name = value; depth == 0 {
				depth = indent
			}
		case key == "name":
			depth = indent
		case key == "url_prefix":
			if prefix = value; depth == 0 {
				depth = indent
			}
		case value == "":
			flush()
		}
	}
	flush()
	return found, nil
}

// member splits a line of YAML with a key and a value, which may be quoted.
func member(line string) (key, value string) {
	if len(line) > 0 && (line[0] == '"' || line[0] == '\'') {
		if end := strings.IndexByte(line[1:], line[0]); end >= 0 {
			key, line = line[1:end+1], line[end+2:]
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), ":")
	} else if i := strings.Index(line+" ", ": "); i >= 0 {
		key, line = line[:i], line[i+1:]
	} else {
		return strings.TrimSuffix(line, ":"), ""
	}
	value = strings.TrimSpace(line)
	switch {
	case len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'':
		value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
	case len(value) >= 2 && value[0] == '"':
		if s, err := strconv.Unquote(value); err == nil {
			value = s
		}
	}
	return key, value
}
