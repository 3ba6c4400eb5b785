package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
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
	listen := "127.0.0.1:0"
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
  zarrdb ui weather.zdb@v1.0:temp
  zarrdb ui s3://bucket/era5.zarr`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := (auth.Listen{Address: listen}); !at.Local() || strings.HasPrefix(listen, "unix:") {
				return usagef("ui: --listen %s: other machines could connect; \"zarrdb serve\" serves the page to them", listen)
			}
			return runUI(cmd, &src, args[0], listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "listen on `ADDR` of this machine: HOST:PORT; port 0 is any free one")
	src.followFlags.register(cmd)
	return cmd
}

func runUI(cmd *cobra.Command, src *sourceFlags, arg, listen string) error {
	endsItself.Store(true)
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	table := serve.New(serve.Options{Log: log})
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
	say(cmd, "http://%s/%s/-/ui/#%s", server.listener.Addr(), secret, state.Encode())
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
