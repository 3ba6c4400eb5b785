package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/auth"
	"github.com/zarrdb/zarrdb/serve/web"
)

func uiCmd() *cobra.Command {
	var src sourceFlags
	listen, show := "127.0.0.1:0", false
	cmd := &cobra.Command{
		Use:   "ui TARGET",
		Short: "Show arrays, history and differences in a browser",
		Long: `Show a database, or any other store that a TARGET names, as a page in a browser:
its arrays as pictures and series, its history, and the differences of versions. The
command prints the address of the page and serves it until it is interrupted. The
page reads and changes nothing.

The address has a secret. Other users of this machine who do not know the secret
see nothing. "zarrdb serve" has the same page at /-/ui/, for everybody who may read.`,
		Example: `  zarrdb ui weather.zdb
  zarrdb ui weather.zdb@v1.0:temp --open
  zarrdb ui s3://bucket/era5.zarr`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := (auth.Listen{Address: listen}); !at.Local() || strings.HasPrefix(listen, "unix:") {
				return usagef("ui: --listen %s: other machines could connect; \"zarrdb serve\" serves the page to them", listen)
			}
			return runUI(cmd, &src, args[0], listen, show)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "listen on `ADDR` of this machine: HOST:PORT; port 0 is any free one")
	cmd.Flags().BoolVar(&show, "open", false, "open the page: with the program that BROWSER names, or that of the system")
	src.followFlags.register(cmd)
	return cmd
}

// browse opens an address in a browser. The error is about a system without a browser. All users of a machine
// can read the arguments of its programs, and the address has a secret: so the browser gets the path of a
// file that only this user may read, and the file leads to the address. Call end when the page is closed.
func browse(address string) (end func(), err error) {
	end = func() {}
	dir, err := os.MkdirTemp("", "zarrdb-ui-") // only for this user
	if err != nil {
		return end, err
	}
	end = func() { _ = os.RemoveAll(dir) }
	path, text := filepath.Join(dir, "zarrdb.html"), html.EscapeString(address)
	page := fmt.Sprintf("<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer><meta http-equiv=refresh content=\"0;url=%s\"><title>zarrdb</title><a href=\"%s\">The page</a>\n", text, text)
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		return end, err
	}
	args := []string{"xdg-open"}
	switch program := os.Getenv("BROWSER"); {
	case program != "":
		args = []string{program}
	case runtime.GOOS == "darwin":
		args = []string{"open"}
	case runtime.GOOS == "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(args[0], append(args[1:], path)...)
	cmd.SysProcAttr = apart() // Ctrl-C ends the server, not the browser
	if err := cmd.Start(); err != nil {
		return end, err
	}
	go func() { _ = cmd.Wait() }() // it may live as long as the browser
	return end, nil
}

func runUI(cmd *cobra.Command, src *sourceFlags, arg, listen string, show bool) error {
	endsItself.Store(true)
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	table := serve.New(serve.Options{Log: log, Follow: followTime})
	t := parseTarget(arg)
	state, targets := url.Values{}, map[string]string{}
	var opened io.Closer
	var err error
	if t.db != "" {
		name := shownName(t.db)
		err = table.Open(cmd.Context(), name, openerOf(cmd, t.db, log, func() { _, _ = table.Writable(context.WithoutCancel(cmd.Context()), name) }))
		state.Set("db", name)
		targets[name] = t.db
		for key, value := range map[string]string{"rev": t.rev, "path": t.path} {
			if value != "" {
				state.Set(key, value)
			}
		}
	} else {
		var s *engine.Source
		if s, err = src.open(cmd, arg); err == nil {
			opened = s
			name := shownName(t.url)
			state.Set("db", name)
			targets[name] = zurl.Redact(t.url)
			err = table.AddTarget(name, s)
		}
	}
	if opened != nil {
		defer opened.Close()
	}
	defer table.Close(context.WithoutCancel(cmd.Context()))
	if err != nil {
		return err
	}
	secret := strings.ToLower(rand.Text())
	h := web.New(table, web.Options{Anonymous: serve.Owner("owner"), Owner: true, ReadOnly: true, Local: true, Log: log, Tables: webTables(cmd.Context()), Targets: targets})
	server := &httpServer{how: auth.Listen{Address: listen, ReadOnly: true}, handler: behindSecret(secret, h)}
	if err := server.begin(cmd, nil, log); err != nil {
		return err
	}
	defer server.Close()
	address := fmt.Sprintf("http://%s/%s/-/ui/#%s", server.listener.Addr(), secret, state.Encode())
	say(cmd, "%s", address)
	if show {
		end, err := browse(address)
		defer end()
		if err != nil {
			note(cmd, "no browser was started: %v", err)
		}
	}
	note(cmd, "serving until interrupted (Ctrl-C)")
	ended := make(chan error, 1)
	go func() { ended <- server.serve() }()
	select {
	case err = <-ended:
	case <-cmd.Context().Done(): // the signal that ends a server is no failure
	}
	return errors.Join(err, server.end(cmd.Context()), table.Close(context.WithoutCancel(cmd.Context())))
}

// shownName returns the name under which the page shows a path or URL. "." and ".." have the
// name of their directory.
func shownName(path string) string {
	name := nameOf("", path)
	if strings.Trim(name, ".") == "" {
		if abs, err := filepath.Abs(path); err == nil {
			name = filepath.Base(abs)
		}
	}
	if name = strings.TrimLeft(name, "-"); strings.Trim(name, `./\`) == "" {
		name = "store"
	}
	return name
}

// behindSecret serves h below a path that only those know who have the secret.
func behindSecret(secret string, h http.Handler) http.Handler {
	prefix := "/" + secret
	inner := http.StripPrefix(prefix, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(first), []byte(secret)) != 1 {
			http.Error(w, "the address that \"zarrdb ui\" printed has a secret in its path; open that address", http.StatusForbidden)
			return
		}
		r.Header.Set("X-Forwarded-Prefix", prefix) // for redirects
		inner.ServeHTTP(w, r)
	})
}
