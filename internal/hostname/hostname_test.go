package hostname

import "testing"

func TestIsLoopback(t *testing.T) {
	for _, c := range []struct {
		host, name string
		loopback   bool
	}{
		{"", "", false},
		{":80", "", false},
		{"localhost", "localhost", true},
		{"localhost:80", "localhost", true},
		{"a.localhost", "a.localhost", false},
		{"localhost.evil.example:80", "localhost.evil.example", false},
		{"127.0.0.1.evil.example", "127.0.0.1.evil.example", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1:80", "127.0.0.1", true},
		{"127.8.9.10", "127.8.9.10", true},
		{"127.1", "127.1", false},
		{"10.0.0.1:80", "10.0.0.1", false},
		{"0.0.0.0:80", "0.0.0.0", false},
		{"::1", "::1", true},
		{"[::1]", "::1", true},
		{"[::1]:80", "::1", true},
		{"[::]:80", "::", false},
		{"::1%lo", "::1%lo", true},
		{"[::1%lo]:80", "::1%lo", true},
		{"[fe80::1%lo]:80", "fe80::1%lo", false},
		{"[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", true},
		{"[::ffff:10.0.0.1]:80", "::ffff:10.0.0.1", false},
	} {
		if name, loopback := Of(c.host), IsLoopback(c.host); name != c.name || loopback != c.loopback {
			t.Errorf("%q: name %q, loopback %v, want %q, %v", c.host, name, loopback, c.name, c.loopback)
		}
	}
}
