// Command served makes a small database and serves it on loopback over HTTP and S3,
// for the clients of serve.py: it prints where, as a line of JSON, and ends when
// standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/auth"
	"github.com/zarrdb/zarrdb/serve/s3"
	"github.com/zarrdb/zarrdb/serve/web"
)

func main() {
	dir := flag.String("dir", "", "an empty directory for the key file")
	flag.Parse()
	if err := run(*dir, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// run serves databases until standard input ends.
func run(dir string, dbs []string) (err error) {
	ctx := context.Background()
	file := filepath.Join(dir, "keys")
	keys := "writer write:main secret-of-the-writer\nreader read secret-of-the-reader\n"
	if err := os.WriteFile(file, []byte(keys), 0o600); err != nil {
		return err
	}
	k, err := auth.Load(file, nil)
	if err != nil {
		return err
	}
	lines := slog.New(slog.NewTextHandler(os.Stderr, nil))
	table := serve.New(serve.Options{Log: lines})
	defer func() { err = errors.Join(err, table.Close(ctx)) }()
	for _, name := range dbs {
		db, err := engine.Open(name, nil)
		if err != nil {
			return err
		}
		defer db.Close()
		if err := table.AddDatabase(filepath.Base(name), db); err != nil {
			return err
		}
	}
	store := s3.New(table, s3.Options{Keys: k, SpoolDir: dir, Log: lines})
	defer func() { err = errors.Join(err, store.Close()) }()
	where := map[string]string{}
	for name, h := range map[string]http.Handler{
		"http": web.New(table, web.Options{Anonymous: &serve.Principal{Name: "anonymous"}, Local: true, ReadOnly: true, Log: lines}),
		"keys": web.New(table, web.Options{Authenticate: k.Authenticate, Log: lines}),
		"s3":   store,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := web.Server(h, nil)
		go server.Serve(l) //nolint:errcheck // it ends with the process
		defer server.Shutdown(ctx)
		where[name] = "http://" + l.Addr().String()
	}
	if err := json.NewEncoder(os.Stdout).Encode(where); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
