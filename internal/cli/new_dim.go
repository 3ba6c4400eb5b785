package cli

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
)

// fields of a pattern of --new-dim, as strftime has them, and where each stands in a date.
var dateFields = map[byte]struct {
	digits int
	before string
}{'Y': {4, ""}, 'm': {2, "-"}, 'd': {2, "-"}, 'H': {2, "T"}, 'M': {2, ":"}, 'S': {2, ":"}}

// newDim reads the argument of --new-dim, NAME=PATTERN or NAME=VALUE,VALUE…, and returns a
// label for each source.
func newDim(arg string, sources []string) (dim string, labels []string, err error) {
	dim, values, ok := strings.Cut(arg, "=")
	if !ok || dim == "" || values == "" {
		return "", nil, usagef("import: --new-dim %s: NAME=PATTERN or NAME=VALUE,VALUE is due", arg)
	}
	if !strings.Contains(values, "%") {
		labels = strings.Split(values, ",")
		if len(labels) != len(sources) {
			return "", nil, usagef("import: --new-dim %s: %d values for %s", arg, len(labels), count(int64(len(sources)), "source"))
		}
		return dim, labels, nil
	}
	form, order, err := datePattern(values)
	if err != nil {
		return "", nil, usagef("import: --new-dim %s: %w", arg, err)
	}
	for _, source := range sources {
		label, err := dateIn(form, order, sourceName(source))
		if err != nil {
			return "", nil, usagef("import: --new-dim %s: %s: %w", arg, zurl.Redact(source), err)
		}
		labels = append(labels, label)
	}
	return dim, labels, nil
}

// sourceName is the last name in the path of a source.
func sourceName(source string) string {
	root, _, _ := strings.Cut(zurl.Redact(source), "|")
	root = strings.TrimRight(root, "/")
	if i := strings.LastIndexByte(root, ':'); i > 1 && !strings.HasPrefix(root[i:], "://") {
		root = root[i+1:] // the node of a database
	}
	return path.Base(strings.ReplaceAll(root, "\\", "/"))
}

// datePattern compiles a pattern such as tas_%Y%m. order holds its fields.
func datePattern(pattern string) (form *regexp.Regexp, order string, err error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '%' {
			b.WriteString(regexp.QuoteMeta(string(c)))
			continue
		}
		i++
		field := byte(0)
		if i < len(pattern) {
			field = pattern[i]
		}
		switch f, ok := dateFields[field]; {
		case field == '%':
			b.WriteByte('%')
		case !ok || strings.IndexByte(order, field) >= 0:
			return nil, "", fmt.Errorf("%%%c: the fields are %%Y %%m %%d %%H %%M %%S, each once", field)
		default:
			fmt.Fprintf(&b, `(\d{%d})`, f.digits)
			order += string(field)
		}
	}
	for i, field := range "YmdHMS" {
		if has := strings.ContainsRune(order, field); has != (i < len(order)) {
			return nil, "", fmt.Errorf("a date begins with %%Y and leaves no field out")
		}
	}
	form, err = regexp.Compile(b.String())
	return form, order, err
}

// dateIn finds the only date in a name.
func dateIn(form *regexp.Regexp, order, name string) (string, error) {
	digit := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= '0' && name[i] <= '9' }
	found := ""
	for at := 0; at < len(name); {
		m := form.FindStringSubmatchIndex(name[at:])
		if m == nil {
			break
		}
		lo, hi := at+m[0], at+m[1]
		if digit(lo) && digit(lo-1) || digit(hi-1) && digit(hi) { // a part of a longer number
			at = lo + 1
			continue
		}
		label := ""
		for _, field := range "YmdHMS"[:len(order)] {
			i := strings.IndexRune(order, field)
			label += dateFields[byte(field)].before + name[at+m[2*i+2]:at+m[2*i+3]]
		}
		if found != "" && found != label {
			return "", fmt.Errorf("the dates %s and %s are in %q: write more of the name into the pattern", found, label, name)
		}
		found, at = label, hi
	}
	if found == "" {
		return "", fmt.Errorf("no such date is in %q", name)
	}
	if len(order) == 1 {
		found += "-01" // a year, and no number
	}
	return found, nil
}
