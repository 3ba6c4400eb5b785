package dirkv

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Form is how a system spells paths. All of it is string work, so both forms
// can be used everywhere.
type Form byte

const (
	// Posix paths are separated by "/".
	Posix Form = '/'
	// Windows paths are separated by "\" and begin with a drive.
	Windows Form = '\\'
)

// Native is the form of the system that the program runs on.
var Native = nativeForm()

func nativeForm() Form {
	if runtime.GOOS == "windows" {
		return Windows
	}
	return Posix
}

// KeyToPath translates a key into the path of its file (specification, "Key
// translation"). A key that would leave base, or that the form cannot hold, is
// kv.ErrInvalidKey.
func (f Form) KeyToPath(base, key string) (string, error) {
	rel, err := f.rel(key)
	if err != nil {
		return "", err
	}
	return f.join(base, rel), nil
}

func (f Form) join(base, rel string) string {
	if base == "" || f.isSeparator(base[len(base)-1]) {
		return base + rel
	}
	return base + string(rune(f)) + rel
}

// PathToKey is the reverse: the key of the file at path, which lies below base.
func (f Form) PathToKey(base, path string) (string, error) {
	norm := func(p string) string {
		if f == Windows {
			p = strings.ReplaceAll(p, "/", `\`)
		}
		return p
	}
	base, path = norm(base), norm(path)
	rest, ok := strings.CutPrefix(path, f.join(base, ""))
	if !ok {
		return "", fmt.Errorf("dirkv: %q is not below %q", path, base)
	}
	key := rest
	if f == Windows {
		key = strings.ReplaceAll(rest, `\`, "/")
	}
	if _, err := f.rel(key); err != nil {
		return "", err
	}
	return key, nil
}

func (f Form) isSeparator(c byte) bool { return c == '/' || f == Windows && c == '\\' }

// rel checks key and returns its path relative to the base directory.
func (f Form) rel(key string) (string, error) {
	if err := kv.ValidKey(key); err != nil {
		return "", err
	}
	if err := f.validNames(key); err != nil {
		return "", err
	}
	if f == Windows {
		return strings.ReplaceAll(key, "/", `\`), nil
	}
	return key, nil
}

// validNames checks the names of a key one by one.
func (f Form) validNames(key string) error {
	for rest, more := key, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		reason := ""
		switch {
		case name == "":
			reason = "an empty name"
		case name == "." || name == "..":
			reason = "the name " + name
		case temp.Is(name):
			reason = "a name reserved for temporary files"
		case f == Windows:
			reason = notOnWindows(name)
		}
		if reason != "" {
			return fmt.Errorf("%w %q: %s cannot be a file", kv.ErrInvalidKey, key, reason)
		}
	}
	return nil
}

// notOnWindows says why a name is not a file there, or nothing.
func notOnWindows(name string) string {
	for i := range len(name) {
		if c := name[i]; c < ' ' || strings.IndexByte(`<>:"\|?*`, c) >= 0 {
			return fmt.Sprintf("a name with %q", c)
		}
	}
	if last := name[len(name)-1]; last == '.' || last == ' ' {
		return "a name that ends in a dot or space"
	}
	// Devices are named in every directory and with any extension.
	stem, _, _ := strings.Cut(name, ".")
	switch stem = strings.ToUpper(strings.TrimRight(stem, " ")); stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return "the name of a device"
	}
	for _, device := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(stem, device); ok && (len(n) == 1 && n[0] >= '0' && n[0] <= '9' || n == "¹" || n == "²" || n == "³") {
			return "the name of a device"
		}
	}
	return ""
}
