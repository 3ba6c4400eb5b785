//go:build !race

package local

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// resident is how much memory the process has.
func resident(t testing.TB) int64 {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	n := must.Get(strconv.ParseInt(strings.Fields(string(b))[1], 10, 64))(t)
	return n * int64(os.Getpagesize())
}

// A thousand connections that are idle take little, on both sides together.
func TestIdleConnections(t *testing.T) {
	h, _ := served(t, nil, nil)
	before := resident(t)
	conns := make([]net.Conn, 1000)
	for i := range conns {
		_, conns[i] = rawConn(t, h)
	}
	if took := resident(t) - before; took > 64<<20 {
		t.Errorf("%d MiB", took>>20)
	} else {
		t.Logf("%d KiB", took>>10)
	}
}
