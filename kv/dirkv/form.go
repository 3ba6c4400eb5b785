package dirkv

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Form is the path syntax of a system. Its methods only handle strings, so both
// forms work on every system.
type Form byte

const (
	// posix paths are separated by "/".
	posix Form = '/'
	// windows paths are separated by "\" and begin with a drive.
	windows Form = '\\'
)

// native is the form of the system that the program runs on.
var native = nativeForm()

func nativeForm() Form {
	if runtime.GOOS == "windows" {
		return windows
	}
	return posix
}

// rel translates a key into the path of its file, relative to the base directory
// (specification, "Key translation"). A key that would leave the base directory, or
// that the form cannot hold, is kv.ErrInvalidKey.
func (f Form) rel(key string) (string, error) {
	if err := kv.ValidKey(key); err != nil {
		return "", err
	}
	if err := f.validNames(key); err != nil {
		return "", err
	}
	if f == windows {
		return strings.ReplaceAll(key, "/", `\`), nil
	}
	return key, nil
}

// CheckKey returns kv.ErrInvalidKey for a key that no directory can have on this system.
func CheckKey(key string) error {
	if _, err := native.rel(key); err != nil {
		return err
	}
	for name := range strings.SplitSeq(key, "/") {
		if len(name) > maxName {
			return fmt.Errorf("%w %q: a name of %d bytes cannot be a file", kv.ErrInvalidKey, key, len(name))
		}
	}
	return nil
}

// maxName is the longest name of common file systems.
const maxName = 255

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
		case f == windows:
			reason = notOnWindows(name)
		}
		if reason != "" {
			return fmt.Errorf("%w %q: %s cannot be a file", kv.ErrInvalidKey, key, reason)
		}
	}
	return nil
}

// notOnWindows returns why Windows allows no file of that name, or "".
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
