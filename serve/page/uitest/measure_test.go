package uitest

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Figures of the design note, which depend on the machine: ZARRDB_MEASURE=1 go test -run Measure -v .
func TestMeasure(t *testing.T) {
	if os.Getenv("ZARRDB_MEASURE") == "" {
		t.Skip("ZARRDB_MEASURE is not set")
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("load %s", strings.TrimSpace(string(load)))
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:a/t", "--shape", "101,181,360", "--chunks", "1,181,360", "--dtype", "float32", "--dims", "time,lat,lon")
	values, noise := make([]float32, 0, 101*181*360), uint32(1)
	for i := range cap(values) {
		noise = noise*1664525 + 1013904223
		y, x := float64(i/360%181)*math.Pi/180, float64(i%360)*math.Pi/180
		values = append(values, float32(280+20*math.Sin(y)+8*math.Sin(3*x+float64(i/65160))+float64(noise>>8)/(1<<24)))
	}
	writeNpy(t, filepath.Join(dir, "t.npy"), []int{101, 181, 360}, values)
	run(t, dir, "write", "x.zdb:a/t", "-i", "t.npy")
	url := serve(t, dir, "ui", "x.zdb:a/t")
	var first []float64
	requests := 0
	var p *page
	for range 8 {
		p = open(t, "about:blank", 1280, 800)
		p.do(chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := cdp.AddScriptToEvaluateOnNewDocument(`(() => { const f = CanvasRenderingContext2D.prototype.drawImage; CanvasRenderingContext2D.prototype.drawImage = function (...a) { window.firstPicture ||= performance.now(); return f.apply(this, a); }; })()`).Do(ctx)
			return err
		}), chromedp.Navigate(url))
		p.drawn()
		first = append(first, eval[float64](p, "window.firstPicture"))
		requests = max(requests, 1+eval[int](p, "performance.getEntriesByType('resource').length"))
	}
	t.Logf("first picture %.0f ms in the first tab, then %.0f ms; at most %d requests", first[0], first[1:], requests)
	busy := func() (seconds float64) { // of the main thread
		p.do(performance.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
			all, err := performance.GetMetrics().Do(ctx)
			for _, m := range all {
				if m.Name == "TaskDuration" {
					seconds = m.Value
				}
			}
			return err
		}))
		return seconds
	}
	before := busy()
	eval[any](p, "performance.clearResourceTimings(), performance.setResourceTimingBufferSize(1000)")
	steps := eval[[]float64](p, `(async () => {
		const out = [];
		for (let i = 1; i <= 100; i++) {
			const t = performance.now();
			location.hash = 'db=x.zdb&path=a/t&at=' + i + ',0,0';
			while (!document.querySelector('.slider output').innerText.startsWith(i + ' ')) await new Promise((f) => setTimeout(f, 4));
			out.push(performance.now() - t);
		}
		return out;
	})()`)
	slices.Sort(steps)
	t.Logf("the page works for %.0f ms a step", 10*(busy()-before))
	size := eval[int](p, "Math.max(...performance.getEntriesByType('resource').filter((e) => e.name.includes('/window')).map((e) => e.encodedBodySize))")
	t.Logf("100 steps: median %.0f ms, p95 %.0f ms, most %.0f ms; at most %d bytes a step", steps[49], steps[94], steps[99], size)

	for _, c := range []struct{ name, shape, chunks, dtype string }{
		{"plane", "100000,100000", "1000,1000", "float64"}, {"chunk", "8192,8192", "8192,8192", "float32"}, {"line", "1099511627776", "1073741824", "uint8"}, {"near", "4,4", "4,4", "float64"},
	} {
		run(t, dir, "create", "x.zdb:"+c.name, "--shape", c.shape, "--chunks", c.chunks, "--dtype", c.dtype, "--fill", "1")
		if c.name != "line" {
			run(t, dir, "write", "x.zdb:"+c.name, "-s", "1,1", "--value", "1.0000000000000002")
		}
	}
	for _, args := range [][]string{{"plane"}, {"chunk"}, {"line"}, {"near"}, {"plane", "--histogram"}, {"a/t", "--animate", "time", "-o", "a.gif"}} {
		if len(args) < 4 {
			args = append(args, "-o", "a.png")
		}
		cmd := exec.Command(program(t), append([]string{"plot", "x.zdb:" + args[0]}, args[1:]...)...)
		cmd.Dir = dir
		begin := time.Now()
		out, err := cmd.CombinedOutput()
		t.Logf("plot %s: %d MB in %.1f s %s%v", strings.Join(args, " "), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss/1000, time.Since(begin).Seconds(), out, fmt.Sprint(err))
	}
}
