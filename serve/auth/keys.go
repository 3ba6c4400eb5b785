// Package auth reads the keys of a server's clients from a file, one on each
// line:
//
//	# name    scopes                   secret
//	viewer    read                     sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	loader    write:main,write:exp/*   2mJc0Fq-longer-than-16
//	ops       admin                    …
//	anonymous read                     -
//
// Scopes are read, which every key has, write:PATTERN for branches in the syntax
// of [path.Match], where * alone is every branch, and admin. A name may have
// several lines, so that a new secret can be distributed before the old one is
// removed. S3 signatures need the secret itself; all other uses need only its
// SHA-256. The line anonymous allows reading without a key.
//
// The file is read again when it changes.
package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/serve"
)

// errKeys means that a key file is invalid. The error names the line, and never
// quotes a secret.
var errKeys = errors.New("auth: bad key file")

// anonymousName is the name of the line for requests without a key.
const anonymousName = "anonymous"

// Bounds of a key file.
const (
	maxFile   = 1 << 20
	minSecret = 16 // characters, so that none can be guessed
)

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// key is one line.
type key struct {
	who    *serve.Principal
	sum    [sha256.Size]byte
	secret string // "" if the file has only its sum
}

// Keys are the keys of a file. Safe for concurrent use.
type Keys struct {
	file string
	log  *slog.Logger

	mu        sync.Mutex
	keys      []key
	anonymous *serve.Principal
	seen      fs.FileInfo
	read      time.Time // when the file was read
	looked    time.Time // when it was last checked for changes
	failed    string    // the error of that check
}

// Load reads a key file. After a later invalid change the keys stay as they
// were, and the error goes to log, which may be nil.
func Load(file string, log *slog.Logger) (*Keys, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keys{file: file, log: log}
	if err := k.load(time.Now()); err != nil {
		return nil, err
	}
	return k, nil
}

// load reads the file. k.mu is held, or k is not shared yet.
func (k *Keys) load(now time.Time) error {
	f, err := os.Open(k.file)
	if err != nil {
		return fmt.Errorf("open key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("read key file: %w", err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("%w %s: longer than %d bytes", errKeys, k.file, maxFile)
	}
	keys, anonymous, err := parse(b)
	if err != nil {
		return fmt.Errorf("%w %s: %w", errKeys, k.file, err)
	}
	plain := slices.ContainsFunc(keys, func(k key) bool { return k.secret != "" })
	if plain && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%w %s: it has secrets and other users may read it: chmod 600, or store sha256:…", errKeys, k.file)
	}
	k.keys, k.anonymous, k.seen, k.read = keys, anonymous, info, now
	return nil
}

// parse reads the lines of a key file.
func parse(b []byte) (keys []key, anonymous *serve.Principal, err error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxFile+1)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 {
			return nil, nil, fmt.Errorf("line %d: want NAME SCOPES SECRET, separated by blanks", n)
		}
		who, err := parseScopes(fields[0], fields[1])
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		if who.Name == anonymousName {
			if fields[2] != "-" || who.Admin || len(who.Write) > 0 {
				return nil, nil, fmt.Errorf("line %d: the line of %s is \"%[2]s read -\": requests without a key cannot write", n, anonymousName)
			}
			anonymous = who
			continue
		}
		one, err := parseSecret(fields[2])
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		one.who = who
		keys = append(keys, one)
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(keys) == 0 && anonymous == nil {
		return nil, nil, errors.New("it has no keys")
	}
	return keys, anonymous, nil
}

func parseScopes(name, scopes string) (*serve.Principal, error) {
	if !validName.MatchString(name) {
		return nil, errors.New("a name has letters, digits, dots, _ and - only, 128 at most")
	}
	who := &serve.Principal{Name: name}
	for scope := range strings.SplitSeq(scopes, ",") {
		pattern, isWrite := strings.CutPrefix(scope, "write:")
		switch {
		case scope == "read":
		case scope == "admin":
			who.Admin = true
		case isWrite && pattern != "":
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("key %s: pattern %q: %w", name, pattern, err)
			}
			who.Write = append(who.Write, pattern)
		default:
			return nil, fmt.Errorf("key %s: the scopes are read, write:PATTERN and admin", name)
		}
	}
	return who, nil
}

func parseSecret(text string) (key, error) {
	if sum, ok := strings.CutPrefix(text, "sha256:"); ok {
		b, err := hex.DecodeString(sum)
		if err != nil || len(b) != sha256.Size {
			return key{}, errors.New("after sha256: come 64 hexadecimal digits")
		}
		return key{sum: [sha256.Size]byte(b)}, nil
	}
	if len(text) < minSecret {
		return key{}, fmt.Errorf("the secret has fewer than %d characters", minSecret)
	}
	return key{sum: sha256.Sum256([]byte(text)), secret: text}, nil
}

// Times between checks of the file, and after which a time stamp distinguishes
// changes.
const (
	lookEvery = time.Second
	coarse    = 2 * time.Second
)

// now returns the current keys of the file.
func (k *Keys) now() ([]key, *serve.Principal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Sub(k.looked) >= lookEvery {
		k.looked = now
		if err := k.refresh(now); err != nil && err.Error() != k.failed {
			k.failed = err.Error()
			k.log.Error("key file changed and is not valid; the keys stay as they were", "error", err)
		} else if err == nil {
			k.failed = ""
		}
	}
	return k.keys, k.anonymous
}

// refresh reads the file again if it may have changed. k.mu is held.
func (k *Keys) refresh(now time.Time) error {
	info, err := os.Stat(k.file)
	if err != nil {
		return err
	}
	same := os.SameFile(info, k.seen) && info.Size() == k.seen.Size() && info.ModTime().Equal(k.seen.ModTime())
	if same && k.read.Sub(info.ModTime()) > coarse {
		return nil
	}
	return k.load(now)
}
