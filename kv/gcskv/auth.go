package gcskv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// scope is what tokens are asked for: reading and writing objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// sign adds the access token of the configured credentials, if any.
func sign(req *http.Request) error {
	if token := os.Getenv("GOOGLE_OAUTH_ACCESS_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	source, err := defaultSource()
	if err != nil || source == nil {
		return err
	}
	token, err := source.Token()
	if err != nil {
		// The whole text quotes the server's answer about the credentials.
		var e *oauth2.RetrieveError
		if errors.As(err, &e) && e.ErrorCode != "" {
			return fmt.Errorf("no token is given for the credentials (%.80s)", e.ErrorCode)
		}
		return errors.New("no token can be had for the credentials")
	}
	token.SetAuthHeader(req)
	return nil
}

// sources caches the token sources of the process by credentials file, so that a
// token is used as long as it is valid.
var sources struct {
	mu sync.Mutex
	m  map[string]oauth2.TokenSource
}

// defaultSource returns the source of the application default credentials, nil
// without any.
func defaultSource() (oauth2.TokenSource, error) {
	file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	sources.mu.Lock()
	defer sources.mu.Unlock()
	if s, ok := sources.m[file]; ok {
		return s, nil
	}
	var source oauth2.TokenSource
	if file != "" || hasFile() || !strings.EqualFold(os.Getenv("NO_GCE_CHECK"), "true") {
		c, err := google.FindDefaultCredentials(context.Background(), scope)
		switch {
		case err == nil:
			source = c.TokenSource
		case file != "" || hasFile():
			return nil, errors.New("the file of application default credentials cannot be used") // it may be quoted
		}
	}
	if sources.m == nil {
		sources.m = map[string]oauth2.TokenSource{}
	}
	sources.m[file] = source
	return source, nil
}

// hasFile reports whether the credentials file of gcloud exists.
func hasFile() bool {
	dir := filepath.Join(os.Getenv("APPDATA"), "gcloud")
	if runtime.GOOS != "windows" {
		home, err := os.UserHomeDir()
		if err != nil {
			return false
		}
		dir = filepath.Join(home, ".config", "gcloud")
	}
	_, err := os.Stat(filepath.Join(dir, "application_default_credentials.json"))
	return err == nil
}
