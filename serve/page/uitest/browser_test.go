// Package uitest tests the page in a real browser. It is a module of its own, so that the
// program does not depend on the driver of the browser.
//
//	ZARRDB           the program to test; default the one in the root of the repository
//	CHROMIUM         the browser; default chromium, chromium-browser or google-chrome
//	FIREFOX          a second browser; default firefox or firefox-esr, if there is one
//	ZARRDB_IMAGES    a directory; then the pictures of the documentation are written there
package uitest

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// program is the path of zarrdb.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ZARRDB")
	if path == "" {
		path = "../../../zarrdb"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: make build first", err)
	}
	return path
}

// run runs a command line of the program in a directory.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("zarrdb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// serve runs a command that prints the address of a server, and returns the address.
func serve(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("zarrdb %s: no address: %s", strings.Join(args, " "), &messages)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return strings.TrimSpace(line[strings.Index(line, "http"):])
}

// page is a tab of the browser, which remembers everything that goes wrong in it.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
	hosts  map[string]bool // of requests
	sent   []string
}

var chrome struct {
	sync.Once
	ctx  context.Context
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chrome.stop != nil {
		chrome.stop()
	}
	os.Exit(code)
}

func open(t *testing.T, url string, width, height int) *page {
	t.Helper()
	chrome.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("force-color-profile", "srgb"))
		if path := os.Getenv("CHROMIUM"); path != "" {
			options = append(options, chromedp.ExecPath(path))
		}
		alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(alloc)
		chrome.ctx, chrome.stop = ctx, func() { end(); stop() }
		if err := chromedp.Run(ctx); err != nil {
			t.Fatalf("no browser: %v; install chromium, or name one in CHROMIUM", err)
		}
	})
	ctx, stop := chromedp.NewContext(chrome.ctx)
	t.Cleanup(stop)
	p := &page{t: t, ctx: ctx, hosts: map[string]bool{}}
	chromedp.ListenTarget(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			p.faults = append(p.faults, ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeWarning {
				for _, arg := range ev.Args {
					p.faults = append(p.faults, fmt.Sprintf("console %s: %s %s", ev.Type, arg.Value, arg.Description))
				}
			}
		case *log.EventEntryAdded: // of the policy among others
			if ev.Entry.Level == log.LevelError && ev.Entry.Source != log.SourceNetwork {
				p.faults = append(p.faults, ev.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			u := ev.Request.URL
			p.sent = append(p.sent, u)
			if strings.HasPrefix(u, "http") {
				host := strings.SplitN(u, "/", 4)[2]
				p.hosts[host[strings.Index(host, "@")+1:]] = true
			}
		}
	})
	if err := chromedp.Run(ctx); err != nil { // makes the tab, which lives as long as this context
		t.Fatal(err)
	}
	p.do(log.Enable(), network.Enable(), chromedp.EmulateViewport(int64(width), int64(height)), chromedp.Navigate(url))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, fault := range p.faults {
			t.Errorf("in the browser: %s", fault)
		}
		if len(p.hosts) > 1 {
			t.Errorf("requests to %v", p.hosts)
		}
	})
	return p
}

// patience is how long a page may take on a busy machine.
const patience = 60 * time.Second

func (p *page) do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, patience)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns the value of an expression of JavaScript, which may be a promise.
func eval[T any](p *page, js string) (out T) {
	p.t.Helper()
	p.do(chromedp.Evaluate(js, &out, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return out
}

// wait waits until an expression of JavaScript is true.
func (p *page) wait(js string) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for !eval[bool](p, "!!("+js+")") {
		if time.Now().After(end) {
			p.t.Fatalf("never true: %s\nthe page says:\n%s", js, eval[string](p, "document.body.innerText"))
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// shows waits for a text.
func (p *page) shows(text string) {
	p.t.Helper()
	q, _ := json.Marshal(text)
	p.wait("document.body && document.body.innerText.includes(" + string(q) + ")")
}

// view changes parts of the state of the page.
func (p *page) view(hash string) {
	p.t.Helper()
	q, _ := json.Marshal(hash)
	eval[string](p, "location.hash = "+string(q))
}

// drawn waits until the picture has every element or pixel, and nothing is being read.
func (p *page) drawn() {
	p.t.Helper()
	p.wait("document.querySelector('.plane canvas') && !document.querySelector('.busy') && !document.querySelector('.loading') && /is drawn/.test(document.body.innerText)")
	p.wait(opaque + " > 1000")
}

// opaque counts the pixels of the picture that have a colour.
const opaque = `(() => { const c = document.querySelector('.plane canvas'); if (!c || !c.width) return 0; const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i] === 255) n++; return n; })()`

func (p *page) screenshot(path string) {
	p.t.Helper()
	var b []byte
	p.do(chromedp.CaptureScreenshot(&b))
	if err := os.WriteFile(path, b, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// writeNpy writes float32 or int64 elements.
func writeNpy(t *testing.T, path string, shape []int, values any) {
	t.Helper()
	kind := "<f4"
	if _, ok := values.([]int64); ok {
		kind = "<i8"
	}
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", kind, text)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	b, err := binary.Append(append(b, head...), binary.LittleEndian, values)
	if err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// weather makes a database with temperatures of 40 days on a grid, a tag, a second branch that is
// merged, and a correction.
func weather(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const days, lats, lons = 40, 91, 180
	create := func(path, dims string, shape string, chunks string, dtype string, attrs ...string) {
		t.Helper()
		run(t, dir, "create", "weather.zdb:"+path, "--shape", shape, "--chunks", chunks, "--dtype", dtype, "--dims", dims, "--fill", map[string]string{"float32": "NaN", "int64": "0"}[dtype])
		args := []string{"attrs", "weather.zdb:" + path}
		for _, a := range attrs {
			args = append(args, "--set", a)
		}
		run(t, dir, args...)
	}
	run(t, dir, "init", "weather.zdb")
	create("time", "time", "40", "40", "int64", "units=days since 2024-01-01", "calendar=proleptic_gregorian")
	create("lat", "lat", "91", "91", "float32", "units=degrees_north")
	create("lon", "lon", "180", "180", "float32", "units=degrees_east")
	create("t2m", "time,lat,lon", "40,91,180", "10,46,60", "float32", "units=K", "long_name=temperature at two metres")
	time, lat, lon := make([]int64, days), make([]float32, lats), make([]float32, lons)
	for i := range time {
		time[i] = int64(i)
	}
	for i := range lat {
		lat[i] = float32(-90 + 2*i) // from the south, so that the picture has to be turned
	}
	for i := range lon {
		lon[i] = float32(2 * i)
	}
	values := make([]float32, 0, days*lats*lons)
	for d := range days {
		for y := range lats {
			for x := range lons {
				phi, lambda := float64(lat[y])*math.Pi/180, float64(lon[x])*math.Pi/180
				v := 252 + 44*math.Cos(phi) + 7*math.Sin(3*lambda+float64(d)/5)*math.Cos(phi)*math.Cos(phi) + 9*math.Sin(float64(d)/7)*math.Sin(phi) + 3*math.Sin(11*lambda)*math.Sin(7*phi)
				if math.Hypot(float64(lat[y])+25, float64(lon[x])-130) < 14 {
					v = math.NaN()
				}
				values = append(values, float32(v))
			}
		}
	}
	for name, of := range map[string]struct {
		shape  []int
		values any
	}{"time": {[]int{days}, time}, "lat": {[]int{lats}, lat}, "lon": {[]int{lons}, lon}, "t2m": {[]int{days, lats, lons}, values}} {
		file := filepath.Join(dir, name+".npy")
		writeNpy(t, file, of.shape, of.values)
		run(t, dir, "write", "weather.zdb:"+name, "-i", file, "-m", "load "+name)
	}
	run(t, dir, "tag", "weather.zdb", "v1.0")
	run(t, dir, "branch", "weather.zdb", "experiment")
	run(t, dir, "write", "weather.zdb@experiment:t2m", "-s", "12,60:80,20:60", "--value", "310", "-m", "a warm patch")
	run(t, dir, "attrs", "weather.zdb", "--set", "title=Synthetic weather", "-m", "a title")
	run(t, dir, "merge", "weather.zdb", "experiment", "-m", "take the experiment")
	return dir
}
