package uitest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// firefox is a tab of Firefox, which speaks WebDriver BiDi.
type firefox struct {
	t      *testing.T
	conn   net.Conn
	n      int
	tab    string
	faults []string
}

func openFirefox(t *testing.T, url string) *firefox {
	t.Helper()
	program, named := os.Getenv("FIREFOX"), os.Getenv("FIREFOX") != ""
	for _, name := range []string{"firefox", "firefox-esr"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Skip("no Firefox was found: install Firefox, or give its path in FIREFOX")
	}
	cmd := exec.Command(program, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", t.TempDir(), "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it starts others
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	addresses := make(chan string, 1)
	go func() {
		defer close(addresses)
		for lines := bufio.NewScanner(out); lines.Scan(); { // to its end, so that it does not wait for a reader
			if _, address, ok := strings.Cut(lines.Text(), "BiDi listening on "); ok && len(addresses) == 0 {
				addresses <- address
			}
		}
	}()
	address := ""
	select {
	case address = <-addresses:
	case <-time.After(patience):
	}
	switch {
	case address == "" && named:
		t.Fatalf("%s gives no address of WebDriver BiDi", program)
	case address == "":
		t.Skipf("%s gives no address of WebDriver BiDi; name another one in FIREFOX", program)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	f := &firefox{t: t}
	if f.conn, _, _, err = ws.Dial(ctx, strings.TrimSpace(address)+"/session"); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	t.Cleanup(func() {
		f.conn.Close()
		for _, fault := range f.faults {
			t.Errorf("in Firefox: %s", fault)
		}
	})
	f.call("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	f.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	f.call("browsingContext.getTree", map[string]any{}, &tree)
	f.tab = tree.Contexts[0].Context
	f.call("browsingContext.setViewport", map[string]any{"context": f.tab, "viewport": map[string]int{"width": 1280, "height": 900}}, nil)
	f.call("browsingContext.navigate", map[string]any{"context": f.tab, "url": url, "wait": "complete"}, nil)
	return f
}

// call sends a command, and waits for its answer.
func (f *firefox) call(method string, params map[string]any, out any) {
	f.t.Helper()
	f.n++
	b, _ := json.Marshal(map[string]any{"id": f.n, "method": method, "params": params})
	_ = f.conn.SetDeadline(time.Now().Add(patience))
	if err := wsutil.WriteClientText(f.conn, b); err != nil {
		f.t.Fatal(method, err)
	}
	for {
		b, err := wsutil.ReadServerText(f.conn)
		if err != nil {
			f.t.Fatal(method, err)
		}
		var m struct {
			ID             int
			Type, Message  string
			Method         string
			Result, Params json.RawMessage
		}
		if err := json.Unmarshal(b, &m); err != nil {
			f.t.Fatal(err)
		}
		switch {
		case m.Method == "log.entryAdded":
			var entry struct{ Level, Text string }
			if _ = json.Unmarshal(m.Params, &entry); entry.Level == "error" {
				f.faults = append(f.faults, entry.Text)
			}
		case m.ID != f.n:
		case m.Type == "error":
			f.t.Fatal(method, m.Message)
		default:
			if out != nil {
				err = json.Unmarshal(m.Result, out)
			}
			if err != nil {
				f.t.Fatal(err)
			}
			return
		}
	}
}

// wait waits until an expression of JavaScript is true.
func (f *firefox) wait(js string) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var out struct{ Result struct{ Value any } }
		f.call("script.evaluate", map[string]any{"expression": "!!(" + js + ")", "awaitPromise": true, "target": map[string]any{"context": f.tab}}, &out)
		if out.Result.Value == true {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("never true: %s", js)
		}
	}
}

func (f *firefox) view(hash string) {
	f.t.Helper()
	f.wait(fmt.Sprintf("(location.hash = %q)", hash))
}

// at moves the pointer to a place of the picture, in parts of it, and presses or turns the wheel.
func (f *firefox) at(fx, fy float64, kind string, actions ...map[string]any) {
	f.t.Helper()
	var out struct{ Result struct{ Value string } }
	f.call("script.evaluate", map[string]any{"expression": "JSON.stringify(document.querySelector('.plane canvas').getBoundingClientRect())", "awaitPromise": false, "target": map[string]any{"context": f.tab}}, &out)
	var r struct{ X, Y, Width, Height float64 }
	if err := json.Unmarshal([]byte(out.Result.Value), &r); err != nil {
		f.t.Fatal(err)
	}
	x, y := int(r.X+62+fx*(r.Width-72)), int(r.Y+8+fy*(r.Height-42))
	for _, a := range actions {
		if a["type"] == "pointerMove" || a["type"] == "scroll" {
			a["x"], a["y"] = x, y
		}
	}
	f.call("input.performActions", map[string]any{"context": f.tab, "actions": []any{map[string]any{"type": kind, "id": kind, "actions": actions}}}, nil)
}

// Pictures, the value under the pointer, lines, the wheel, the graph and differences are in Firefox as in Chromium.
func TestFirefox(t *testing.T) {
	f := openFirefox(t, serve(t, weather(t), "ui", "weather.zdb")+"&path=t2m&at=12,0,0&coast=1")
	drawn := "document.querySelector('.plane canvas') && !document.querySelector('.busy') && /is drawn/.test(document.body.innerText) && " + opaque + " > 1000"
	f.wait(drawn)
	f.at(0.25, 0.22, "pointer", map[string]any{"type": "pointerMove"})
	f.wait("document.querySelector('.readout strong').innerText === '310 K'")
	f.at(0.25, 0.22, "pointer", map[string]any{"type": "pointerMove"}, map[string]any{"type": "pointerDown", "button": 0}, map[string]any{"type": "pointerUp", "button": 0})
	f.wait("document.querySelectorAll('.u-legend .u-series').length === 2")
	f.at(0.5, 0.5, "wheel", map[string]any{"type": "scroll", "deltaX": 0, "deltaY": -300})
	f.wait("/win=/.test(location.hash)")
	f.wait(drawn)
	f.view("db=weather.zdb&view=history&all=1")
	f.wait("document.querySelectorAll('.log svg').length === 16 && document.querySelectorAll('.ref').length === 3")
	f.view("db=weather.zdb&path=t2m&view=compare&from=v1.0")
	f.wait("/800 values in 1 place differ/.test(document.body.innerText) && document.querySelectorAll('.three canvas').length === 3 && !document.querySelector('.busy')")
	f.view("db=weather.zdb&path=t2m&view=info")
	f.wait("/24 chunks/.test(document.body.innerText)")
}
