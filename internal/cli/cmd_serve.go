package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/auth"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/serve/metrics"
	"github.com/zarrdb/zarrdb/serve/s3"
	"github.com/zarrdb/zarrdb/serve/web"
	"github.com/zarrdb/zarrdb/txn"
)

// serveFlags are the flags of the serve command.
type serveFlags struct {
	src                sourceFlags
	listen, s3, keys   string
	access             string
	readOnly, onlyHere bool
	cert, key          string
	proxied            bool
	origins            []string
	idle               duration
}

func serveCmd() *cobra.Command {
	f := serveFlags{idle: duration(time.Minute)}
	cmd := &cobra.Command{
		Use:   "serve [NAME=]TARGET…",
		Short: "Serve databases and other stores over HTTP",
		Long: `Serve databases, or anything else that a TARGET names, over HTTP. A directory that
holds databases stands for all of them. Any version is a Zarr store below

  http://ADDR/NAME/v/REV/          for example /weather.zdb/v/main/

where NAME is that of the directory or file, and a slash in REV is written as a
colon: /weather.zdb/v/exp:one/. Everything else that the server has lies below /-/.

Without --keys the server takes no writes and listens to this machine only. A key
file has a line "NAME SCOPES SECRET" for each client; see docs/serving.md. Keys and
certificate are read again when their files change, and upon SIGHUP, which ends a server
only on a terminal.

Other commands and programs on this machine work with the database meanwhile. If another
process has the database open, this command joins that process. --local serves to this
machine only, without HTTP, and ends when it had no client for a while; programs start it.`,
		Example: `  zarrdb serve weather.zdb
  zarrdb serve weather.zdb --listen :8443 --keys keys.txt --tls-cert c.pem --tls-key k.pem
  zarrdb serve era5=s3://bucket/era5.zarr ./databases
  zarrdb serve weather.zdb --listen :8443 --s3 :9000 --keys keys.txt --tls-cert c.pem --tls-key k.pem
  zarrdb serve weather.zdb --local`,
		Args: argCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "localhost:8080", "listen on `ADDR`: HOST:PORT, or unix:PATH")
	flags.StringVar(&f.s3, "s3", "", "serve to S3 clients too, at `ADDR`; buckets are named as databases")
	flags.StringVar(&f.keys, "keys", "", "let clients in, and write, by the keys in this `FILE`")
	flags.BoolVar(&f.readOnly, "read-only", false, "refuse all writes, even with keys that allow them")
	flags.StringVar(&f.cert, "tls-cert", "", "encrypt, with the certificate chain in this `FILE`")
	flags.StringVar(&f.key, "tls-key", "", "the private key of the certificate, a `FILE`")
	flags.BoolVar(&f.proxied, "behind-tls-proxy", false, "a proxy in front encrypts; keys may be taken without TLS")
	flags.StringVar(&f.access, "access-log", "", "append a line for each request to `FILE`, in the common log format; - is the log of the server")
	flags.StringArrayVar(&f.origins, "origin", nil, "let web pages of this `ORIGIN` read (repeatable; * is all)")
	flags.BoolVar(&f.onlyHere, "local", false, "serve one database to this machine only, without HTTP")
	flags.Var(&f.idle, "idle", "with --local: end when there was no client for this `TIME`; 0s never does")
	f.src.followFlags.register(cmd)
	return cmd
}

// checkFlags refuses options without a value, as a variable that is not set gives them: another
// program would take an empty address for every address of the machine.
func (f *serveFlags) checkFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Value.Type() == "string" && flag.Value.String() == "" || flag.Name == "origin" && slices.Contains(f.origins, "") {
			err = usagef("serve: --%s is empty; leave it out, or give it a value", flag.Name)
		}
	})
	return err
}

func (f *serveFlags) run(cmd *cobra.Command, args []string) error {
	endsItself.Store(true)
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	if (f.cert == "") != (f.key == "") {
		return usagef("serve: --tls-cert and --tls-key belong together")
	}
	if f.onlyHere {
		return f.runLocal(cmd, args)
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	tlsConfig, cert, err := f.tls(log)
	if err != nil {
		return err
	}
	closed := f.readOnly || f.keys == ""
	servers := []*httpServer{{managed: true, how: auth.Listen{Address: f.listen}}}
	if f.s3 != "" {
		servers = append(servers, &httpServer{how: auth.Listen{Address: f.s3}})
	}
	for _, s := range servers {
		s.how.Keys, s.how.ReadOnly, s.how.TLS = f.keys != "", closed, tlsConfig != nil || f.proxied
		if err := s.how.Check(); err != nil {
			return usagef("serve: %w", err)
		}
	}
	count := metrics.New()
	o := web.Options{
		Tables:   webTables(cmd.Context()),
		ReadOnly: closed, Origins: f.origins, Log: log, Metrics: count,
		Local: auth.Listen{Address: f.listen}.Local() && !f.proxied,
	}
	so := s3.Options{ReadOnly: closed, Log: log, Metrics: count, Local: auth.Listen{Address: f.s3}.Local() && !f.proxied}
	var keys *auth.Keys
	if f.keys != "" {
		if keys, err = auth.Load(f.keys, log); err != nil {
			return err
		}
		o.Authenticate, so.Keys = keys.Authenticate, keys
	} else {
		o.Anonymous = &serve.Principal{Name: "anonymous"}
		so.Anonymous = o.Anonymous
	}
	to := serve.Options{Log: log}
	var table *serve.Table
	opener := func(name, dir string) serve.Opener {
		return openerOf(cmd, dir, log, func() { _, _ = table.Writable(context.WithoutCancel(cmd.Context()), name) })
	}
	named := servedDirectories(args)
	if len(named) > 0 {
		to.Look = func() map[string]serve.Opener {
			all := map[string]serve.Opener{}
			for _, in := range named {
				for _, dir := range databasesIn(in.dir) {
					name := nameOf(in.name, dir)
					all[name] = opener(name, dir)
				}
			}
			return all
		}
	}
	if len(args) == 1 && len(named) == 1 {
		to.Create = func(_ context.Context, name string) error {
			return createToServe(cmd, filepath.Join(named[0].dir, name), name, log)
		}
	}
	to.Follow = followTime
	table = serve.New(to)
	opened, err := f.openAll(cmd, args, table, opener)
	defer func() {
		_ = table.Close(context.WithoutCancel(cmd.Context()))
		for _, c := range opened {
			_ = c.Close()
		}
	}()
	if err != nil {
		return err
	}
	servers[0].handler = web.New(table, o)
	if f.s3 != "" {
		h := s3.New(table, so)
		defer h.Close()
		servers[1].handler = h
	}
	if f.access != "" {
		out := cmd.ErrOrStderr()
		if f.access != "-" {
			file, err := os.OpenFile(f.access, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
			if err != nil {
				return fmt.Errorf("serve: the log of requests: %w", err)
			}
			defer file.Close()
			out = file
		}
		for _, s := range servers {
			s.handler = metrics.Log(s.handler, out)
		}
	}
	for _, s := range servers {
		if err := s.begin(cmd, tlsConfig, log); err != nil {
			return err
		}
		defer s.Close()
	}
	scheme := "http"
	if tlsConfig != nil {
		scheme = "https"
	}
	for _, name := range table.Names() {
		say(cmd, "%s at %s://%s/%s/v/main/", name, scheme, servers[0].listener.Addr(), serve.EscapeSegment(name))
	}
	if len(servers) > 1 {
		say(cmd, "S3 at %s://%s", scheme, servers[1].listener.Addr())
	}
	if !onTerminal(cmd) {
		again := func() {
			notify("RELOADING=1")
			reloadAll(log, keys, cert)
			notify("READY=1")
		}
		reload.Store(&again)
		defer reload.Store(nil)
	}
	notify("READY=1")
	ended := make(chan error, len(servers))
	for _, s := range servers {
		go func() { ended <- s.serve() }()
	}
	select {
	case err = <-ended:
	case <-cmd.Context().Done(): // the signal that ends a server is no failure
	}
	notify("STOPPING=1")
	for _, s := range servers {
		err = errors.Join(err, s.end(cmd.Context()))
	}
	return errors.Join(err, table.Close(context.WithoutCancel(cmd.Context())))
}

// httpServer is a handler at an address.
type httpServer struct {
	*http.Server
	how      auth.Listen
	managed  bool // the service manager may have made its socket
	handler  http.Handler
	listener net.Listener
}

// begin listens.
func (s *httpServer) begin(cmd *cobra.Command, tls *tls.Config, log *slog.Logger) error {
	s.Server = web.Server(s.handler, tls)
	s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	on, err := listenOn(cmd.Context(), s.how.Address, s.managed)
	if err != nil {
		return err
	}
	if err := s.how.On(on.Addr()).Check(); err != nil {
		_ = on.Close()
		return usagef("%s: %w", cmd.Name(), err)
	}
	s.listener = web.Listener(on)
	return nil
}

// serve answers requests until the server ends.
func (s *httpServer) serve() error {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(s.listener, "", "")
	} else {
		err = s.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// end lets requests end that are under way, for a while.
func (s *httpServer) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	return err
}

// certificate is read again when its files change.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	now    *tls.Certificate
	stamps [2]time.Time // of the files that were read, or that could not be read
	looked time.Time
}

func (f *serveFlags) tls(log *slog.Logger) (*tls.Config, *certificate, error) {
	if f.cert == "" {
		return nil, nil, nil
	}
	c := &certificate{cert: f.cert, key: f.key, log: log}
	if err := c.load(); err != nil {
		return nil, nil, fmt.Errorf("serve: %w", err)
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}, c, nil
}

// load reads the files. c.mu is held, or c is not shared yet.
func (c *certificate) load() error {
	c.stamps = c.changed()
	now, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.now = &now
	}
	return err
}

// changed returns when the files changed last.
func (c *certificate) changed() (at [2]time.Time) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// get returns the present certificate. It looks at the files once a second.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= time.Second {
		if c.looked = now; c.changed() != c.stamps {
			if err := c.load(); err != nil { // one of the files may be written next
				c.log.Error("certificate changed and is not valid; the old one stays", "error", err)
			} else {
				c.log.Info("certificate read again")
			}
		}
	}
	return c.now, nil
}

// reloadAll reads keys and certificate again, if there are some.
func reloadAll(log *slog.Logger, keys *auth.Keys, cert *certificate) {
	var err error
	if keys != nil {
		err = keys.Reload()
	}
	if cert != nil {
		cert.mu.Lock()
		err = errors.Join(err, cert.load())
		cert.mu.Unlock()
	}
	if err != nil {
		log.Error("reload: what is not valid stays as it was", "error", err)
		return
	}
	log.Info("keys and certificate read again")
}

// namedDirectory is a directory whose databases are served.
type namedDirectory struct{ name, dir string }

// servedDirectories returns those of the arguments that are directories of databases.
func servedDirectories(args []string) (list []namedDirectory) {
	for _, arg := range args {
		name, target := splitName(arg)
		if t := parseTarget(target); t.db == "" && databasesIn(t.url) != nil {
			list = append(list, namedDirectory{name, t.url})
		}
	}
	return list
}

// openAll opens the arguments and adds them to the table. If a database in a directory of databases cannot be
// opened, the log has the reason, and the others are served.
func (f *serveFlags) openAll(cmd *cobra.Command, args []string, table *serve.Table, opener func(name, dir string) serve.Opener) (opened []io.Closer, err error) {
	for _, arg := range args {
		name, target := splitName(arg)
		t := parseTarget(target)
		switch {
		case t.db == "" && databasesIn(t.url) != nil: // the table finds them
		case t.db == "" && t.url != "":
			src, err := f.src.open(cmd, target)
			if err != nil {
				return opened, err
			}
			opened = append(opened, src)
			if err := table.AddTarget(nameOf(name, t.url), src); err != nil {
				return opened, err
			}
		case t.rev != "" || t.path != "":
			return opened, usagef("serve: %s: every version of a database is served; leave out what is behind %s", arg, t.db)
		default:
			if err := table.Open(cmd.Context(), nameOf(name, t.db), opener(nameOf(name, t.db), t.db)); err != nil {
				return opened, err
			}
		}
	}
	table.Check(cmd.Context(), table.Names()) // opens those in directories
	return opened, nil
}

// openerOf returns what opens a database for a server. If the database cannot be written now, for example on a full
// disk, it is opened to read. failed is called when this process has stopped to serve the database to other processes; it
// may open the database again.
func openerOf(cmd *cobra.Command, dir string, log *slog.Logger, failed func()) serve.Opener {
	return func(ctx context.Context) (db *engine.DB, lacks, err error) {
		to := shared(cmd, &engine.Options{CareFailed: careTo(log, dir)})
		to.Share = true
		to.Serve = Serving(&local.Options{Hurry: cmd.Context().Done()}, func(err error) {
			log.Warn("serving to other processes", "database", dir, "error", err)
			go failed()
		})
		db, err = local.OpenOrRead(ctx, dir, to)
		if err != nil && !errors.Is(err, engine.ErrLocked) && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrMoved) {
			to.Engine.ReadOnly = true
			if reader, readErr := local.Open(ctx, dir, to); readErr == nil {
				return reader, err, nil
			}
		}
		return db, nil, err
	}
}

// createToServe makes a database in a directory that is served.
func createToServe(cmd *cobra.Command, dir, name string, log *slog.Logger) error {
	if !servedName.MatchString(name) {
		return fmt.Errorf("%w: it has letters, digits, dots, _ and - only", serve.ErrName)
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%w: there is a file of that name", serve.ErrName)
	}
	db, err := openDB(cmd, dir, &engine.Options{Create: true, CareFailed: careTo(log, dir)})
	if err != nil {
		return err
	}
	return db.Close()
}

// careTo reports errors of background work.
func careTo(log *slog.Logger, dir string) func(txn.CareError) {
	return func(e txn.CareError) {
		log.Warn("background work", "database", dir, "work", e.Work, "error", e.Err.Error())
	}
}

var servedName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// splitName takes NAME= off an argument, unless a file has that name.
func splitName(arg string) (name, target string) {
	name, target, ok := strings.Cut(arg, "=")
	if !ok || !servedName.MatchString(name) {
		return "", arg
	}
	if _, err := os.Lstat(arg); err == nil {
		return "", arg
	}
	return name, target
}

// nameOf returns the served name of a path or URL: its last part.
func nameOf(name, path string) string {
	if name != "" {
		return name
	}
	base := strings.TrimRight(strings.ReplaceAll(path, "|", "/"), "/:")
	return base[strings.LastIndexAny(base, `/\`)+1:]
}

// databasesIn returns the databases that lie in a directory, sorted.
func databasesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); engine.IsDatabase(path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// listenOn listens on an address, or on the socket that the process was started
// with, as systemd does.
func listenOn(ctx context.Context, addr string, managed bool) (net.Listener, error) {
	if managed && os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) && os.Getenv("LISTEN_FDS") == "1" {
		const first = 3 // sd_listen_fds(3)
		f := os.NewFile(first, "socket of the service manager")
		defer f.Close()
		return net.FileListener(f)
	}
	var c net.ListenConfig
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return c.Listen(ctx, "unix", path)
	}
	return c.Listen(ctx, "tcp", addr)
}

// notify tells the service manager, if any, the state of the server; see sd_notify(3).
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// runLocal serves one database to this machine until it has no client for some
// time.
func (f *serveFlags) runLocal(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("serve: --local serves one database")
	}
	t, err := parseDB(args[0])
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	to := shared(cmd, &engine.Options{CareFailed: func(e txn.CareError) { warn(cmd, e.Error()) }})
	to.Serve = Serving(&local.Options{Idle: time.Duration(f.idle), Hurry: cmd.Context().Done()}, func(err error) { ended <- err })
	to.Yielded = func() { ended <- nil } // clients find the other process, or start this command again
	db, err := local.OpenOrRead(cmd.Context(), t.db, to)
	if err != nil {
		return err
	}
	if !local.Holds(db) {
		note(cmd, "another process serves it already")
		return db.Close()
	}
	notify("READY=1")
	select {
	case err = <-ended:
	case <-cmd.Context().Done():
	}
	if errors.Is(err, local.ErrIdle) {
		err = nil
	}
	return errors.Join(err, db.Close())
}

// followTime is how often a server asks at most whether a remote that it serves has changed.
const followTime = 5 * time.Second
