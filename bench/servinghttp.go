package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// overHTTP fetches chunks with keep-alive, from the holder and from nginx in turn.
func overHTTP(ctx context.Context, b *bench, address, files string) {
	servers := []string{address}
	if other, end := nginx(ctx, b, files); end != nil {
		defer end()
		servers = append(servers, other)
	}
	length := time.Second
	if b.quick {
		length = 50 * time.Millisecond
	}
	for _, kind := range []struct {
		name        string
		size, count int
	}{{"100 B", small, smallCount}, {"64 KiB", middle, middleCount}, {"2 MiB", large, largeCount}} {
		rates := make([]float64, len(servers))
		for range 5 {
			for i, at := range servers {
				named(at, func() { rates[i] = max(rates[i], fetchRate(ctx, at, kind.size, kind.count, length)) })
			}
		}
		b.add("serving", "HTTP, "+kind.name, "rate", rates[0], "/s")
		if len(servers) > 1 {
			b.sample("serving", "HTTP, "+kind.name, "rate", "/s", "nginx", rates[1])
		}
	}
}

// fetchRate returns how many values a second two connections fetch. They parse no more
// of an answer than they need, so that most of the time is the server's.
func fetchRate(ctx context.Context, at string, size, count int, length time.Duration) float64 {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var fetched [2]int
	start := time.Now()
	parallel(len(fetched), func(c int) {
		fetched[c] = fetch(ctx, at, size, count, c*count/len(fetched), start.Add(length))
	})
	return float64(fetched[0]+fetched[1]) / time.Since(start).Seconds()
}

// fetch gets values one after the other on one connection, and counts them.
func fetch(ctx context.Context, at string, size, count, from int, until time.Time) (n int) {
	u := must(url.Parse(at))
	var d net.Dialer
	c := must(d.DialContext(ctx, "tcp", u.Host))
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	buf := make([]byte, 256<<10)
	for ; time.Now().Before(until); n++ {
		key := servedKey(size, (from+n)%count)
		must(fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: %s\r\n\r\n", u.Path, key, u.Host))
		have, body := 0, -1
		for body < 0 {
			have += must(c.Read(buf[have:]))
			if end := bytes.Index(buf[:have], []byte("\r\n\r\n")); end >= 0 {
				if head := string(buf[:end]); !strings.HasPrefix(head, "HTTP/1.1 200 ") || !strings.Contains(head, fmt.Sprintf("Content-Length: %d", size)) {
					check(fmt.Errorf("the answer to GET %s is %q", key, head))
				}
				body = have - end - 4
			}
		}
		for body < size {
			body += must(c.Read(buf))
		}
	}
	return n
}

// nginxConfig serves the files of one directory. %[1]s is the directory of the server's own files.
const nginxConfig = `daemon off;
worker_processes auto;
pid %[1]s/pid;
error_log %[1]s/log;
events { worker_connections 64; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000000;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server { listen 127.0.0.1:%[2]d; root %[3]s; }
}
`

// nginx starts nginx on a free port. end is nil if it is not installed.
func nginx(ctx context.Context, b *bench, files string) (address string, end func()) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: nginx is not installed, HTTP is measured without it")
		return "", nil
	}
	dir := b.path("nginx")
	check(os.Mkdir(dir, 0o755))
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // workers of another user could not reach the files
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	port := free.Addr().(*net.TCPAddr).Port
	config := filepath.Join(dir, "nginx.conf")
	check(errors.Join(free.Close(), os.WriteFile(config, fmt.Appendf([]byte(user), nginxConfig, dir, port, files), 0o644)))
	cmd := exec.CommandContext(ctx, program, "-c", config, "-e", filepath.Join(dir, "log"))
	cmd.Stderr = os.Stderr
	check(cmd.Start())
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	for range 100 {
		var c net.Conn
		if c, err = net.Dial("tcp", host); err == nil {
			check(c.Close())
			return "http://" + host + "/", end
		}
		time.Sleep(50 * time.Millisecond)
	}
	end()
	check(fmt.Errorf("nginx does not answer: %w", err))
	return "", nil
}
