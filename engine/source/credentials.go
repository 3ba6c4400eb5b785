package source

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/zarrdb/zarrdb/internal/hostname"
)

// tokenVariable begins the names of variables with bearer tokens, one for a host. The
// rest of the name is the host with "_" for dots and for the colon before a port, and
// "__" for hyphens, as in ZARRDB_TOKEN_data_example_org. Case does not count.
const tokenVariable = "ZARRDB_TOKEN_"

// maxNetrc bounds how much of a netrc file is read.
const maxNetrc = 1 << 20

// authorization returns the header Authorization for requests to a host, which may have a
// port: the bearer token of a variable, or login and password of the host in the file that
// NETRC names, by default .netrc in the home directory. The result is "" without credentials
// for the host, and for plain http to another machine. The entry "default" of netrc files does not
// count, because references lead to hosts that strangers chose.
func authorization(scheme, host string) string {
	if scheme != "https" && !hostname.IsLoopback(host) {
		return ""
	}
	variable := tokenOf(host)
	for _, v := range os.Environ() {
		if of, token, _ := strings.Cut(v, "="); strings.EqualFold(of, variable) && token != "" {
			return "Bearer " + strings.TrimSpace(token)
		}
	}
	login, password, ok := netrcLogin(readNetrc(), hostname.Of(host))
	if !ok {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+password))
}

// tokenOf returns the name of the variable with the token for a host.
func tokenOf(host string) string {
	return tokenVariable + strings.NewReplacer(".", "_", ":", "_", "-", "__", "[", "", "]", "").Replace(host)
}

// howToAuthorize says how a user gives the credentials that authorization returns.
func howToAuthorize(u *url.URL) string {
	if u.Scheme != "https" && !hostname.IsLoopback(u.Host) {
		return "credentials are sent over https only, write https://"
	}
	return fmt.Sprintf("a token is read from the variable %s, login and password of %s from ~/.netrc or the file that NETRC names", tokenOf(u.Host), u.Hostname())
}

// readNetrc returns the text of the user's netrc file, or "" if the file cannot be read.
func readNetrc() string {
	path := os.Getenv("NETRC")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		path = filepath.Join(home, ".netrc")
		if _, err := os.Stat(path); err != nil && runtime.GOOS == "windows" {
			path = filepath.Join(home, "_netrc")
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, maxNetrc))
	return string(b)
}

// netrcLogin finds the first entry of a host. Words may stand in double quotes. A word that
// begins with "#" begins a comment, unless the word is a value.
func netrcLogin(text, host string) (login, password string, ok bool) {
	found := false
	for text != "" {
		var word, value string
		word, text = netrcWord(text)
		switch {
		case word == "default", word == "machine":
			if found {
				return login, password, true
			}
			if word == "machine" {
				value, text = netrcWord(text)
				found = strings.EqualFold(value, host)
			}
		case word == "login", word == "user", word == "password", word == "account":
			value, text = netrcWord(text)
			if found && word == "password" {
				password = value
			} else if found && word != "account" {
				login = value
			}
		case word == "macdef": // ends with an empty line
			_, text, _ = strings.Cut(text, "\n\n")
		case strings.HasPrefix(word, "#"):
			_, text, _ = strings.Cut(text, "\n")
		}
	}
	return login, password, found
}

// netrcWord cuts the next word off a text. The line end behind the word stays in rest.
func netrcWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(text, `"`) {
		if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
			return text[:i], text[i:]
		}
		return text, ""
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:]
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}
