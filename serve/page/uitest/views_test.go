package uitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// point moves the mouse to a place of the picture, in parts of its width and height, and
// clicks there if wanted.
func (p *page) point(fx, fy float64, click bool) {
	p.t.Helper()
	r := eval[map[string]float64](p, `(() => { const c = document.querySelector('.plane canvas'); c.scrollIntoView({block: 'center'}); const r = c.getBoundingClientRect(); return {x: r.x, y: r.y, w: r.width, h: r.height}; })()`)
	x, y := r["x"]+62+fx*(r["w"]-72), r["y"]+8+fy*(r["h"]-42)
	p.do(chromedp.MouseEvent("mouseMoved", x, y))
	if click {
		p.do(chromedp.MouseClickXY(x, y))
	}
}

func TestTreeAndMetadata(t *testing.T) {
	p := open(t, serve(t, weather(t), "ui", "weather.zdb"), 1280, 800)
	p.shows("Synthetic weather")
	p.shows("40 × 91 × 180 float32")
	p.do(chromedp.Click(`//div[@role="tree"]//a[text()="t2m"]`))
	p.drawn()
	p.do(chromedp.Click("#tab-info"))
	for _, text := range []string{"temperature at two metres", "655,200 elements, 2.5 MiB decoded", "10 × 46 × 60, 24 chunks in a grid of 4 × 2 × 3", "zstd"} {
		p.shows(text)
	}
	p.do(chromedp.Click(`//button[contains(., "as it is stored")]`))
	p.shows(`"node_type": "array"`)
	if hash := eval[string](p, "location.hash"); !strings.Contains(hash, "path=t2m") || !strings.Contains(hash, "view=info") {
		t.Error(hash)
	}
	p.do(chromedp.NavigateBack())
	p.drawn()
}

func TestPicture(t *testing.T) {
	url := serve(t, weather(t), "ui", "weather.zdb")
	p := open(t, url+"&path=t2m&at=12,0,0", 1280, 800)
	p.drawn()
	p.shows("2024-01-13")
	p.shows("% missing")
	if got := eval[string](p, "document.querySelector('.controls select').selectedOptions[0].text"); got != "lat" {
		t.Errorf("down is %q", got)
	}
	p.point(0.25, 0.22, false) // in the patch of 310 K in the north: latitudes ascend, and the picture has the north on top
	p.shows("310 K")
	p.shows("lat 5") // 50 degrees north
	p.wait("/element 12, 7\\d, 4\\d/.test(document.body.innerText)")
	p.point(0.36, 0.64, false)
	p.wait("/missing/.test(document.querySelector('.readout').innerText)")

	// A point gives a series, a second one another line; the CSV has both.
	p.point(0.25, 0.22, true)
	p.point(0.7, 0.7, true)
	p.wait("document.querySelectorAll('.u-legend .u-series').length === 3")
	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.do(chromedp.Click(`//button[text()="Save CSV"]`), chromedp.Click(`//button[text()="Save PNG"]`))
	csv := download(t, filepath.Join(downloads, "t2m_time.csv"))
	lines := strings.Split(strings.TrimSpace(string(csv)), "\n")
	if len(lines) != 41 || !regexp.MustCompile(`^time,"lat 5\d°, lon \d+°","lat -`).MatchString(lines[0]) || !strings.HasPrefix(lines[13], "2024-01-13T00:00:00,310,2") {
		t.Errorf("%d lines: %s / %s", len(lines), lines[0], lines[min(13, len(lines)-1)])
	}
	if png := download(t, filepath.Join(downloads, "t2m.png")); !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("%.10q", png)
	}

	// The slider, the range, another map, other axes and the zoom.
	eval[any](p, `(() => { const r = document.querySelector('.slider input'); r.value = 20; r.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	p.shows("2024-01-21")
	p.wait("location.hash.includes('at=20,0,0')")
	p.view("db=weather.zdb&path=t2m&map=grey&lo=0&hi=1000&at=12,0,0")
	p.drawn()
	p.wait("[...document.querySelectorAll('.bar figcaption span')].map((s) => s.innerText).join() === '0,K,1000'")
	p.wait(`(() => { const c = document.querySelector('.plane canvas'), d = c.getContext('2d').getImageData(c.width / 2, c.height / 2, 1, 1).data; return d[0] === d[1] && d[1] === d[2] && d[0] > 60 && d[0] < 80; })()`)
	p.view("db=weather.zdb&path=t2m&y=2&x=0&at=0,45,0")
	p.drawn()
	p.shows("0° · index 45")
	p.view("db=weather.zdb&path=t2m")
	p.drawn()
	p.do(chromedp.Click(`button[aria-label="Zoom in"]`))
	p.wait("/win=/.test(location.hash)")
	p.wait("document.querySelector('.commands textarea').value.includes('-s 0,18:73,36:144 --decode-cf')")
	p.do(chromedp.Click(`button[aria-label="Show all"]`))
	p.wait("!/win=/.test(location.hash)")

	// Dragging moves the picture, also by many small steps: browsers refuse many changes of the
	// address in a short time.
	p.view("db=weather.zdb&path=t2m&win=20:60,40:120")
	p.drawn()
	eval[any](p, `(async () => {
		const c = document.querySelector('.plane canvas'), r = c.getBoundingClientRect();
		const send = (type, i) => c.dispatchEvent(new PointerEvent(type, {pointerId: 1, isPrimary: true, bubbles: true, clientX: r.x + 300 - i / 4, clientY: r.y + 150}));
		c.setPointerCapture = () => {};
		send('pointerdown', 0);
		for (let i = 1; i <= 400; i++) {
			send('pointermove', i);
			await new Promise((f) => setTimeout(f));
		}
		send('pointerup', 400);
	})()`)
	p.wait("((m) => m && Number(m[1]) > 46)(/win=20:60,([\\d.]+):/.exec(location.hash))")
}

// What one can choose about colours, the element that one types, the wheel, and files of what is seen.
func TestChoices(t *testing.T) {
	dir := weather(t)
	run(t, dir, "create", "weather.zdb:cover", "--shape", "4,6", "--dtype", "int8", "--dims", "y,x", "--fill", "0")
	run(t, dir, "attrs", "weather.zdb:cover", "--set", "flag_values=[1,2,5]", "--set", "flag_meanings=open_water forest bare_rock")
	run(t, dir, "create", "weather.zdb:long/x", "--shape", "5000", "--dtype", "int8", "--dims", "x", "--fill", "7")
	run(t, dir, "attrs", "weather.zdb:long/x", "--set", "units=m")
	run(t, dir, "create", "weather.zdb:long/v", "--shape", "5000,2", "--dtype", "int8", "--dims", "x,y", "--fill", "1")
	for i, v := range []string{"1", "2", "5", "9"} {
		run(t, dir, "write", "weather.zdb:cover", "-s", fmt.Sprint(i), "--value", v)
	}
	p := open(t, serve(t, dir, "ui", "weather.zdb")+"&path=cover", 1280, 800)
	p.drawn()
	p.wait("[...document.querySelectorAll('.bar li')].map((l) => l.innerText.trim()).join() === '1 open water 25.0 %,2 forest 25.0 %,5 bare rock 25.0 %,other values 25.0 %'")
	p.point(0.5, 0.4, false)
	p.wait("document.querySelector('.readout strong').innerText === '2 forest'")
	pixel := `((fx, fy) => { const c = document.querySelector('.plane canvas'), k = c.width / c.clientWidth; return [...c.getContext('2d').getImageData(k * (62 + fx * (c.clientWidth - 72)), k * (8 + fy * (c.clientHeight - 42)), 1, 1).data].slice(0, 3).join(); })`
	p.wait(pixel + "(0.5, 0.1) === '230,159,0'")

	p.view("db=weather.zdb&path=t2m&at=12,0,0&map=grey&lo=1&hi=1000&log=1")
	p.drawn()
	p.wait("[...document.querySelectorAll('.ticks span')].map((s) => s.innerText).join() === '10,100'")
	p.wait(pixel + "(0.25, 0.22) === '212,212,212'") // 310 K: 255 · log 310 / log 1000
	p.do(chromedp.Click(`//label[contains(., "reversed")]/input`))
	p.wait(pixel + "(0.25, 0.22) === '43,43,43'")
	p.do(chromedp.SendKeys(".goto", "2024-01-21"+kb.Enter))
	p.wait("location.hash.includes('at=20,0,0')")
	p.do(chromedp.SendKeys(".goto", "#3"+kb.Enter))
	p.wait("location.hash.includes('at=3,0,0')")
	p.do(chromedp.SendKeys(".goto", "1999"+kb.Enter))
	p.shows("time has no element 1999")

	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.view("db=weather.zdb&path=t2m&at=12,0,0&win=60:62,20:23")
	p.drawn()
	p.do(chromedp.Click(`//button[text()="csv"]`), chromedp.Click(`//button[text()="npy"]`))
	if got := string(download(t, filepath.Join(downloads, "t2m.csv"))); !strings.HasPrefix(got, "\"lat/lon\",40,42,44\n30,310,310,310\n32,") {
		t.Errorf("%q", got)
	}
	p.view("db=weather.zdb&path=long/v&win=4998:5000,0:2") // labels that the page does not have
	p.drawn()
	p.do(chromedp.Click(`//button[text()="csv"]`), chromedp.Click(`//button[text()="parquet"]`))
	if got := string(download(t, filepath.Join(downloads, "long_v.csv"))); got != "\"x/y\",0,1\n\"7 m\",1,1\n\"7 m\",1,1\n" {
		t.Errorf("%q", got)
	}
	if got := download(t, filepath.Join(downloads, "long_v.parquet")); !strings.HasPrefix(string(got), "PAR1") {
		t.Errorf("%q", got)
	}
	if got := string(download(t, filepath.Join(downloads, "t2m.npy"))); !strings.Contains(got, "'shape': (2, 3)") {
		t.Errorf("%q", got)
	}

	p.view("db=weather.zdb&path=t2m&at=12,0,0&map=grey&lo=-1000&hi=-999&coast=1") // white, but for missing values
	p.drawn()
	p.wait(`((d) => { let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] < 100 && d[i + 1] < 100) n++; return n > 1000; })((() => { const c = document.querySelector('.plane canvas'); return c.getContext('2d').getImageData(70, 12, c.width - 90, c.height - 60).data; })())`)

	// A centre moves pixels, coasts and the pointer with them: the warm patch lies at 40 to 120 degrees.
	p.view("db=weather.zdb&path=t2m&at=12,0,0&map=grey&lo=300&hi=301&centre=0&coast=1")
	p.drawn()
	p.wait("document.querySelector('.readout')")
	p.point(0.75, 0.22, false)
	p.wait("/^310 K/.test(document.querySelector('.readout').innerText) && /lon (88|90|92)°/.test(document.querySelector('.readout').innerText) && /element 12, 7\\d, 4\\d/.test(document.querySelector('.readout').innerText)")
	p.wait(pixel + "(0.75, 0.22) === '255,255,255' && " + pixel + "(0.25, 0.22) === '0,0,0'")
	p.point(0.75, 0.22, true)
	p.wait("/pts=12,7\\d,4\\d/.test(location.hash)")
	p.view("db=weather.zdb&path=t2m&at=12,0,0&centre=0&win=60:62,110:113")
	p.drawn()
	p.wait("document.querySelector('.commands textarea').value.includes('-s 12,60:62,20:23 ')")

	// The wheel zooms under the pointer, and scrolls the page where all is in sight.
	p.view("db=weather.zdb&path=t2m&at=12,0,0")
	p.drawn()
	wheel := func(by int) {
		eval[any](p, fmt.Sprintf(`(() => { const c = document.querySelector('.plane canvas'), r = c.getBoundingClientRect(); c.dispatchEvent(new WheelEvent('wheel', { deltaY: %d, clientX: r.x + 62, clientY: r.y + 8, bubbles: true, cancelable: true })); })()`, by))
	}
	wheel(300)
	p.wait("!/win=/.test(location.hash)")
	wheel(-300)
	p.wait("/win=(5[78]\\.?\\d*):91,0:66/.test(location.hash)") // the top left corner stays: latitudes go up
}

// Arrays of a group that share an axis are a table with exact values and dates, of which few rows are read.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	create := func(path, shape, dtype, fill, attrs string) {
		t.Helper()
		run(t, dir, "create", "x.zdb:s/"+path, "--shape", shape, "--dtype", dtype, "--fill", fill, "--dims", "time", "--attrs", attrs)
	}
	create("time", "250", "int64", "0", `{"units":"days since 2024-01-01"}`)
	days := make([]int64, 250)
	for i := range days {
		days[i] = int64(i)
	}
	writeNpy(t, filepath.Join(dir, "t.npy"), []int{250}, days)
	run(t, dir, "write", "x.zdb:s/time", "-i", "t.npy")
	create("id", "250", "uint64", "9223372036854775809", "{}")
	create("depth", "250", "float32", "NaN", `{"units":"m"}`)
	create("name", "250", "string", `"Tees, =North"`, "{}")
	create("other", "3", "int8", "0", "{}")
	run(t, dir, "write", "x.zdb:s/depth", "-s", "1:", "--value", "0.1")
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=s", 1280, 800)
	p.do(chromedp.Click("#tab-table"))
	row := func(i int) string {
		return fmt.Sprintf("[...document.querySelectorAll('.values tbody tr')[%d]?.children ?? []].map((c) => c.innerText).join('|')", i)
	}
	p.wait(row(0) + " === '0|2024-01-01|missing|9223372036854775809|Tees, =North'")
	p.wait("document.querySelectorAll('.values tbody tr').length === 100 && " + row(1) + ".startsWith('1|2024-01-02|0.1|')")
	p.do(chromedp.Click(`//button[text()="Last"]`))
	p.wait(row(0) + ".startsWith('150|2024-05-30|') && location.hash.includes('row=150')")
	p.view("db=x.zdb&path=s&view=table&row=249")
	p.wait(row(0) + ".startsWith('249|2024-09-06|')")
	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.do(chromedp.Click(`//button[text()="Save CSV"]`), chromedp.Click(`//tfoot//a[text()="parquet"]`))
	lines := strings.Split(string(download(t, filepath.Join(downloads, "s.csv"))), "\n")
	if len(lines) != 252 || lines[0] != `"time","depth","id","name"` || lines[250] != `2024-09-06T00:00:00,0.1,9223372036854775809,"Tees, =North"` {
		t.Errorf("%d lines: %q", len(lines), lines[:2])
	}
	if got := download(t, filepath.Join(downloads, "time.parquet")); !strings.HasPrefix(string(got), "PAR1") {
		t.Errorf("%q", got)
	}
}

// Variables of the same axes share a chart, with a second axis where their units differ, and a step of
// time is saved as an animation.
func TestTogether(t *testing.T) {
	dir := weather(t)
	for name, units := range map[string]string{"dew": "K", "rain": "mm"} {
		run(t, dir, "create", "weather.zdb:"+name, "--shape", "40,91,180", "--chunks", "10,46,60", "--dtype", "float32", "--dims", "time,lat,lon", "--fill", "7.5", "--attrs", `{"units":"`+units+`"}`)
	}
	p := open(t, serve(t, dir, "ui", "weather.zdb")+"&path=t2m&at=12,0,0&pts=12,70,40", 1280, 900)
	p.drawn()
	add := func(name string) {
		eval[any](p, `(() => { const s = [...document.querySelectorAll('.series select')].find((s) => s.options[0].text === 'add…'); s.value = '`+name+`'; s.dispatchEvent(new Event('change', {bubbles: true})); })()`)
	}
	p.wait("[...document.querySelectorAll('.series option')].some((o) => o.text === 'rain, mm')")
	add("dew")
	p.shows("One axis: all lines are in K.")
	add("rain")
	p.shows("Two axes: K on the left, mm on the right.")
	p.wait("location.hash.includes('vars=dew,rain') && document.querySelectorAll('.u-legend .u-series').length === 4 && document.querySelectorAll('.u-axis').length === 3")
	eval[any](p, `(() => { const o = document.querySelector('.u-over'), r = o.getBoundingClientRect(); o.scrollIntoView(); const q = o.getBoundingClientRect(); o.dispatchEvent(new MouseEvent('mousemove', {clientX: q.x + q.width / 2, clientY: q.y + 30, bubbles: true})); })()`)
	p.wait("[...document.querySelectorAll('.u-legend .u-value')].filter((v) => v.innerText === '7.5').length === 2")
	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.do(chromedp.Click(`//button[text()="gif"]`))
	if got := download(t, filepath.Join(downloads, "t2m_time.gif")); !strings.HasPrefix(string(got), "GIF89a") {
		t.Errorf("%.10q", got)
	}
}

// Labels are drawn over an image in the colours of their metadata, and the pointer has all digits of
// identifiers. A plate is a grid of its wells, of which some are missing; a click leads to a field.
func TestMicroscopy(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	image := func(path, attrs string, levels ...string) {
		t.Helper()
		var datasets []string
		for i, shape := range levels {
			dtype := "uint8"
			if strings.Contains(path, "labels") {
				dtype = "uint64"
			}
			run(t, dir, "create", fmt.Sprintf("x.zdb:%s/%d", path, i), "--shape", shape, "--dtype", dtype, "--fill", "0")
			scale := strings.Repeat(",1", strings.Count(shape, ","))
			datasets = append(datasets, fmt.Sprintf(`{"path":"%d","coordinateTransformations":[{"type":"scale","scale":[1%s]}]}`, i, scale))
		}
		axes := `{"name":"y","type":"space"},{"name":"x","type":"space"}`
		if strings.Count(levels[0], ",") == 2 {
			axes = `{"name":"c","type":"channel"},` + axes
		}
		run(t, dir, "attrs", "x.zdb:"+path, "--set", `ome={"version":"0.5","multiscales":[{"axes":[`+axes+`],"datasets":[`+strings.Join(datasets, ",")+`]}]`+attrs+`}`)
	}
	image("img", `,"omero":{"channels":[{"label":"A","color":"ff0000","window":{"start":0,"end":100}}]}`, "1,40,40")
	run(t, dir, "write", "x.zdb:img/0", "--all", "--value", "100")
	image("img/labels/cells", `,"image-label":{"colors":[{"label-value":9223372036854775809,"rgba":[0,0,255,255]}]}`, "20,20", "10,10")
	run(t, dir, "write", "x.zdb:img/labels/cells/0", "-s", "0:10,0:10", "--value", "9223372036854775809")
	run(t, dir, "write", "x.zdb:img/labels/cells/0", "-s", "10:,10:", "--value", "7")
	run(t, dir, "attrs", "x.zdb:img/labels", "--set", `ome={"version":"0.5","labels":["cells"]}`)
	for well, value := range map[string]string{"A/1": "200", "B/2": "50"} {
		image("plate/"+well+"/0", "", "64,64", "16,16")
		run(t, dir, "write", "x.zdb:plate/"+well+"/0/1", "-s", "0:8", "--value", value)
		run(t, dir, "attrs", "x.zdb:plate/"+well, "--set", `ome={"version":"0.5","well":{"images":[{"path":"0"}]}}`)
	}
	run(t, dir, "attrs", "x.zdb:plate", "--set", `ome={"version":"0.5","plate":{"name":"P","rows":[{"name":"A"},{"name":"B"}],"columns":[{"name":"1"},{"name":"2"}],"wells":[{"path":"A/1","rowIndex":0,"columnIndex":0},{"path":"A/2","rowIndex":0,"columnIndex":1},{"path":"B/2","rowIndex":1,"columnIndex":1}]}}`)
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=img&label=cells", 1280, 800)
	p.drawn()
	pixel := `((fx, fy) => { const c = document.querySelector('.plane canvas'), k = c.width / c.clientWidth; return [...c.getContext('2d').getImageData(k * (62 + fx * (c.clientWidth - 72)), k * (8 + fy * (c.clientHeight - 42)), 1, 1).data].slice(0, 3).join(); })`
	p.wait("/^12[78],0,12[78]$/.test(" + pixel + "(0.2, 0.3)) && " + pixel + "(0.7, 0.3) === '255,0,0' && " + pixel + "(0.7, 0.6) !== '255,0,0'")
	p.point(0.2, 0.3, false)
	p.shows("cells 9223372036854775809")
	p.point(0.7, 0.3, false)
	p.shows("cells none")
	p.view("db=x.zdb&path=img&label=cells&opacity=1")
	p.wait(pixel + "(0.2, 0.3) === '0,0,255'")
	p.view("db=x.zdb&path=img")
	p.wait(pixel + "(0.2, 0.3) === '255,0,0'")

	p.view("db=x.zdb&path=plate")
	p.wait("[...document.querySelectorAll('.plate tbody td')].map((c) => c.innerText.trim()).join() === ',missing,–,'")
	p.wait("[...document.querySelectorAll('.plate img')].length === 2 && [...document.querySelectorAll('.plate img')].every((i) => i.naturalWidth === 16)")
	p.do(chromedp.Click(`.plate a`))
	p.drawn()
	p.wait("location.hash.includes('path=plate/A/1') && document.querySelector('main h1').innerText.includes('plate/A/1/0')")
}

// download waits for a file.
func download(t *testing.T, path string) []byte {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return b
		}
	}
	t.Fatalf("%s was not saved", path)
	return nil
}

func TestHistory(t *testing.T) {
	dir := weather(t)
	p := open(t, serve(t, dir, "ui", "weather.zdb")+"&view=history", 1280, 900)
	p.shows("take the experiment")
	p.shows("What changed")
	p.wait("document.querySelectorAll('.log li').length === 16")
	p.wait("document.querySelector('.log li:first-child').innerText.includes('merge')")
	p.wait("[...document.querySelectorAll('.ref')].map((r) => r.innerText).sort().join() === 'experiment,main,v1.0'")
	p.do(chromedp.Click(`//ol//a[contains(., "a title")]`))
	p.shows(`attributes.title: (none) -> "Synthetic weather"`)
	p.do(chromedp.Click(`//a[text()="Look at this version"]`))
	p.wait("!document.querySelector('.log') && document.querySelector('.asof input').value.length === 40")

	// Every view obeys "as of".
	p.view("db=weather.zdb&rev=v1.0&path=t2m&at=12,0,0")
	p.drawn()
	p.point(0.25, 0.22, false)
	p.wait("/K/.test(document.querySelector('.readout strong').innerText) && !/310/.test(document.querySelector('.readout strong').innerText)")

	// A branch that moves while one looks.
	p.view("db=weather.zdb&path=t2m")
	p.drawn()
	run(t, dir, "write", "weather.zdb:t2m", "-s", "0", "--value", "250", "-m", "a cold day")
	p.shows("The branch main has new commits.")
	p.do(chromedp.Click(`//button[text()="Show the newest version"]`))
	p.wait("!document.querySelector('.note')")
	p.drawn()
	p.point(0.5, 0.5, false)
	p.shows("250 K")

	p.view("db=weather.zdb&path=t2m&view=history&blame=1")
	p.wait("document.querySelectorAll('.legend li').length === 3")
	p.shows("Point at a chunk")
	p.wait(opaque + " > 1000")
	p.view("db=weather.zdb&view=care")
	p.shows("On disk")
	p.shows("17 commits, 2 branches, 1 tag")
	p.wait("/[1-9][\\d.]* % of \\d/.test(document.body.innerText)") // of look-ups in the cache
	run(t, dir, "session", "begin", "weather.zdb@experiment")
	p.do(chromedp.Reload())
	p.wait("[...document.querySelectorAll('.members td')].some((td) => td.innerText === 'experiment')")
	p.do(chromedp.Click(`//button[text()="Count"]`))
	p.shows("branch main")
	p.shows("branch experiment")
	p.shows("tag v1.0")
}

func TestCompare(t *testing.T) {
	p := open(t, serve(t, weather(t), "ui", "weather.zdb")+"&path=t2m&view=compare&from=v1.0", 1280, 900)
	p.shows("1 chunk changed")
	p.shows("800 values in 1 place differ")
	p.wait("location.hash.includes('at=12,0,0')") // where something differs
	p.shows("Difference: to − from")
	p.wait("document.querySelectorAll('.three canvas').length === 3 && !document.querySelector('.busy')")
	difference := func(fx, fy float64) string {
		return fmt.Sprintf(`(() => { const c = [...document.querySelectorAll('.three canvas')].pop(), k = c.width / c.clientWidth; return c.getContext('2d').getImageData(k * (62 + %g * (c.clientWidth - 72)), k * (8 + %g * (c.clientHeight - 42)), 1, 1).data; })()`, fx, fy)
	}
	neutral := func(fx, fy float64) string { return "((d) => d[2] > 230 && d[3] === 255)(" + difference(fx, fy) + ")" }
	p.wait(neutral(0.8, 0.5)) // where nothing differs
	p.wait("!" + neutral(0.25, 0.3))
	p.point(0.25, 0.3, false)
	p.wait("((v) => v.length === 3 && v[1] === '310' && v[0] > 200 && v[0] < 310 && Math.abs(v[1] - v[0] - v[2]) < 0.01)([...document.querySelectorAll('.three figcaption strong')].map((s) => s.innerText))")
	p.do(chromedp.Click(`//label[contains(., "swipe")]/input`))
	p.wait("document.querySelectorAll('.three canvas').length === 2")
	p.view("db=weather.zdb&view=compare&from=v1.0&to=nowhere")
	p.shows("no such revision")
}

// A change of one value is seen in a plane that is larger than the screen.
func TestCompareOneValue(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:v", "--shape", "5000,6000", "--chunks", "500,500", "--dtype", "int16", "--fill", "0")
	run(t, dir, "tag", "x.zdb", "before")
	run(t, dir, "write", "x.zdb:v", "-s", "2501,3001", "--value", "7")
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=v&view=compare&from=before", 1280, 900)
	p.shows("1 value in 1 place differs")
	p.shows("the largest of each")
	p.wait("document.querySelectorAll('.three canvas').length === 3 && !document.querySelector('.busy')")
	// The box around the place is drawn in grey and in the colour of marks; the value is dark red.
	p.wait(`(() => { const c = [...document.querySelectorAll('.three canvas')].pop(), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; for (let i = 0; i < d.length; i += 4) if (d[i] < 110 && d[i] > 40 && d[i + 1] < 30 && d[i + 2] < 50) return true; return false; })()`)
}

// Times are shown as dates: in the colour bar, under the pointer, and in a comparison.
func TestTimes(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	for _, of := range [][2]string{{"model", `"360_day"`}, {"when", "proleptic_gregorian"}} {
		path, calendar := of[0], of[1]
		run(t, dir, "create", "x.zdb:"+path, "--shape", "4,4", "--dtype", "int32", "--fill", "0")
		run(t, dir, "attrs", "x.zdb:"+path, "--set", "units=days since 2024-02-01", "--set", "calendar="+calendar)
		run(t, dir, "write", "x.zdb:"+path, "-s", "1", "--value", "29")
	}
	url := serve(t, dir, "ui", "x.zdb")
	bar := "[...document.querySelectorAll('.bar figcaption span')].map((s) => s.innerText).join()"
	for path, last := range map[string]string{"when": "2024-03-01", "model": "2024-02-30"} {
		p := open(t, url+"&path="+path, 1280, 800)
		p.drawn()
		p.wait(bar + " === '2024-02-01,," + last + "'")
		p.point(0.5, 0.4, false)
		p.wait("document.querySelector('.readout strong').innerText === '" + last + "'")
	}
	p := open(t, url+"&path=when&view=compare&from=main~1", 1280, 900)
	p.shows("by 29 days.")
	p.wait(bar + ".startsWith('2024-02-01,,2024-03-01,-')")
	p.point(0.5, 0.4, false)
	p.wait("[...document.querySelectorAll('.three figcaption strong')].map((s) => s.innerText).join().startsWith('2024-02-01,2024-03-01,2505600000000')")
}

// Names and attributes of a store never become elements or scripts of the page.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	bad := `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	write := func(path string, doc map[string]any) {
		t.Helper()
		b, err := json.Marshal(doc)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "x.zarr", path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "x.zarr", path, "zarr.json"), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	array := func(names ...string) map[string]any {
		return map[string]any{
			"zarr_format": 3, "node_type": "array", "shape": []int{4, 4}, "data_type": "int32", "fill_value": 7,
			"chunk_grid":         map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": []int{2, 2}}},
			"chunk_key_encoding": map[string]any{"name": "default"}, "codecs": []any{map[string]any{"name": "bytes", "configuration": map[string]any{"endian": "little"}}},
			"dimension_names": names,
			"attributes":      map[string]any{bad: bad, "units": bad, "long_name": bad, "title": map[string]any{"toString": "x", "constructor": 1, "type": "script", "props": map[string]any{"dangerouslySetInnerHTML": map[string]any{"__html": bad}}}},
		}
	}
	names := []string{"<b>bold<", "a b", "ä?#&=+%41", "'quote'", `"double"`, "javascript:alert(1)", "__proto__", "constructor", "toString", strings.Repeat("long", 50), "‮turned"}
	write("", map[string]any{"zarr_format": 3, "node_type": "group", "attributes": map[string]any{"title": bad, "description": bad}})
	for _, name := range names {
		write(name, array(bad, "__proto__"))
	}
	p := open(t, serve(t, dir, "ui", "x.zarr"), 1280, 800)
	p.shows(bad)
	p.wait(fmt.Sprintf("document.querySelectorAll('.members tbody tr').length === %d", len(names)))
	for _, name := range names {
		q, _ := json.Marshal(name)
		p.view("db=x.zarr")
		p.wait("[...document.querySelectorAll('.tree a')].some((a) => a.textContent === " + string(q) + ")")
		link := "[...document.querySelectorAll('.members a')].find((a) => a.textContent === " + string(q) + ")"
		p.wait(link)
		eval[any](p, link+".click()")
		p.wait("new URLSearchParams(location.hash.slice(1)).get('path') === " + string(q))
		p.drawn()
		p.do(chromedp.Click("#tab-info"))
		p.wait("document.querySelector('.attributes')")
	}
	if eval[bool](p, "'hacked' in window || !!document.querySelector('main img, main script, main b')") {
		t.Error("a text of the store became an element")
	}
}

// Failures say what is wrong, and the rest of the page works.
func TestFailures(t *testing.T) {
	dir := weather(t)
	run(t, dir, "export", "weather.zdb", "plain.zarr")
	chunk := filepath.Join(dir, "plain.zarr", "t2m", "c", "0", "0", "0")
	if err := os.WriteFile(chunk, []byte("no chunk"), 0o644); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir, "ui", "weather.zdb")
	p := open(t, url+"&path=nowhere/at/all", 1280, 800)
	p.shows("Not found: /nowhere/at/all")
	p.view("db=weather.zdb&rev=nowhere")
	p.shows("no such revision")
	p.do(chromedp.Click(`//a[text()="Show the branch main"]`))
	p.shows("Synthetic weather")
	p.view("db=elsewhere")
	p.shows("no such database")
	p.view("db=weather.zdb&path=t2m&at=1e9,x,-4&y=7&x=7&win=9:1,a&pts=1,2;99999,1,1&lo=x&map=none&along=12")
	p.drawn()

	damaged := open(t, serve(t, dir, "ui", "plain.zarr")+"&path=t2m", 1280, 800)
	damaged.shows("damaged")
	damaged.view("db=plain.zarr&path=lat")
	damaged.wait("document.querySelector('.u-over')")

	base, _, _ := strings.Cut(url, "#")
	for _, path := range []string{"", "-/ui/", "-/api/names", "weather.zdb/v/main/zarr.json"} {
		host := strings.SplitAfterN(base, "/", 4)
		resp, err := http.Get(strings.Join(host[:3], "") + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("/%s without the secret: %d", path, resp.StatusCode)
		}
	}
}

// A pyramid of OME-Zarr is one picture, from the coarsest level that is fine enough.
func TestPyramid(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	for i, n := range []int{4096, 2048, 1024} {
		run(t, dir, "create", fmt.Sprintf("x.zdb:img/%d", i), "--shape", fmt.Sprintf("%d,%d", n, n), "--chunks", "256,256", "--dtype", "uint8", "--fill", fmt.Sprint(i+1))
	}
	run(t, dir, "write", "x.zdb:img/0", "-s", "0:1000,0:1000", "--value", "9")
	run(t, dir, "attrs", "x.zdb:img", "--set", `multiscales=[{"version":"0.4","datasets":[{"path":"0"},{"path":"1"},{"path":"2"}]}]`)
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=img&raw=1&lo=0&hi=9", 1280, 800)
	p.shows("Resolution 3 of 3 is drawn")
	p.wait("[...document.querySelectorAll('.plane canvas')].length === 1 && !document.querySelector('.busy')")
	p.point(0.1, 0.1, false)
	p.wait("/^9/.test(document.querySelector('.readout').innerText)") // the finest level has the value
	p.view("db=x.zdb&path=img&raw=1&lo=0&hi=9&win=900:1100,900:1100")
	p.shows("Every element is drawn.")
	for path, want := range map[string]string{"": "Resolution 3", "&win=0:2048,0:2048": "Resolution 3", "&win=0:1000,0:1000": "Resolution 2"} {
		p.view("db=x.zdb&path=img&raw=1" + path)
		p.shows(want)
	}
	run(t, dir, "attrs", "x.zdb:img", "--set", `multiscales=[{"version":"0.9","datasets":[{"path":"0"}]}]`)
	open(t, serve(t, dir, "ui", "x.zdb")+"&path=img", 1280, 800).shows(`version "0.9" is not known`)
}

// Pyramids of GeoZarr are one picture too, in each form of its attributes. Levels that are groups
// have a choice of variables, and a level that is missing is passed over.
func TestGeoPyramid(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	for i, n := range []int{4096, 2048, 1024} {
		for _, name := range []string{fmt.Sprintf("arrays/%d", i), fmt.Sprintf("groups/r%d/b02", i), fmt.Sprintf("groups/r%d/b03", i)} {
			run(t, dir, "create", "x.zdb:"+name, "--shape", fmt.Sprintf("%d,%d", n, n), "--chunks", "256,256", "--dtype", "uint8", "--fill", fmt.Sprint(i+1))
		}
	}
	run(t, dir, "create", "x.zdb:groups/r0/x", "--shape", "4096", "--dtype", "int32", "--dims", "x")
	run(t, dir, "create", "x.zdb:groups/r1/only", "--shape", "2048,2048", "--dtype", "uint8", "--fill", "7")
	for _, c := range []struct{ path, attribute, shows string }{
		{"arrays", `{"layout":[{"asset":"0","transform":{"scale":[1,1]}},{"asset":"1","derived_from":"0"},{"asset":"2","derived_from":"1"},{"asset":"../groups/r0"},{"asset":7}]}`, "Resolution 3 of 3"},
		{"groups", `{"layout":[{"asset":"r2"},{"asset":"r1"},{"asset":"r0"},{"asset":"none"}],"resampling_method":"average"}`, "Resolution 3 of 3"},
		{"groups", `{"tile_matrix_set":{"id":"Custom","tileMatrices":[{"id":"r2","cellSize":4},{"id":"r1"},{"id":"r0"}]}}`, "Resolution 3 of 3"},
		{"groups", `{"tile_matrix_set":"WebMercatorQuad","tile_matrix_limits":{"r1":{},"r0":{}}}`, "Resolution 2 of 2"},
	} {
		run(t, dir, "attrs", "x.zdb:"+c.path, "--set", "multiscales="+c.attribute)
		p := open(t, serve(t, dir, "ui", "x.zdb")+"&path="+c.path, 1280, 800)
		p.shows(c.shows + " is drawn")
		if c.path == "groups" {
			p.wait("[...document.querySelectorAll('main option')].map((o) => o.value).join().startsWith('b02,b03,only')")
			eval[any](p, `(() => { const s = document.querySelector('main select'); s.value = 'only'; s.dispatchEvent(new Event('change', {bubbles: true})); })()`)
			p.wait("/variable=only/.test(location.hash) && /One of|Every element/.test(document.body.innerText)")
		}
	}
}

// The value under the pointer has all digits, also where float32 and the numbers of JavaScript
// round.
func TestExactValue(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:big", "--shape", "4,4", "--dtype", "int64", "--fill", "4611686018427387905")
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=big&raw=1", 1280, 800)
	p.drawn()
	p.point(0.5, 0.5, false)
	p.shows("4611686018427387905")
}

// Coordinates with two axes are shown as values under the pointer, and packed values decoded.
func TestCurvilinear(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	for path, fill := range map[string]string{"lat2d": "47.5", "lon2d": "8.25"} {
		run(t, dir, "create", "x.zdb:"+path, "--shape", "8,8", "--dims", "y,x", "--dtype", "float32", "--fill", fill)
	}
	run(t, dir, "create", "x.zdb:v", "--shape", "8,8", "--dims", "y,x", "--dtype", "int16", "--fill", "0")
	run(t, dir, "write", "x.zdb:v", "--value", "120")
	run(t, dir, "attrs", "x.zdb:v", "--set", "scale_factor=0.5", "--set", "add_offset=200", "--set", "units=K", "--set", "coordinates=lat2d lon2d")
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=v", 1280, 800)
	p.drawn()
	p.point(0.5, 0.5, false)
	p.shows("260 K · lat2d 47.5 · lon2d 8.25")
	p.view("db=x.zdb&path=v&raw=1")
	p.drawn()
	p.point(0.4, 0.4, false)
	p.wait("/^120/.test(document.querySelector('.readout').innerText)")
}

// A history of 10,000 commits.
func TestManyCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	run(t, dir, "init", "many.zdb")
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("loader admin 0123456789abcdef\nanonymous read -\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir, "serve", "many.zdb", "--listen", "127.0.0.1:0", "--keys", "keys")
	const commits = 10_000
	for i := range commits {
		r, err := http.NewRequest(http.MethodPut, fmt.Sprintf("%skey?commit=change+%d", url, i+1), strings.NewReader(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			t.Fatal(resp.Status)
		}
	}
	p := open(t, url[:strings.Index(url, "/many.zdb")]+"/-/ui/#db=many.zdb&view=history", 1280, 800)
	p.shows("change 10000")
	for n := 200; n < commits; n *= 5 {
		p.wait(fmt.Sprintf("document.querySelectorAll('.log li').length === %d", n))
		p.do(chromedp.Click(`//button[text()="Show older commits"]`))
	}
	p.wait(fmt.Sprintf("document.querySelectorAll('.log li').length === %d", commits+1))
	eval[any](p, "document.querySelector('.log li:last-child a').click()")
	p.shows("The first commit.")
}

// The graph of all branches has no line on another, and what was scrolled stays so.
func TestGraph(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:base", "--shape", "3", "--dtype", "int32", "--fill", "0")
	for i := range 9 {
		run(t, dir, "branch", "x.zdb", fmt.Sprint("b", i))
	}
	for i := range 9 {
		run(t, dir, "create", fmt.Sprintf("x.zdb@b%d:a%d", i, i), "--shape", "3", "--dtype", "int32", "--fill", "0")
		run(t, dir, "attrs", fmt.Sprintf("x.zdb@b%d", i), "--set", fmt.Sprintf("n%d=1", i))
	}
	for i := range 6 {
		run(t, dir, "merge", "x.zdb", fmt.Sprint("b", i), "-m", fmt.Sprint("merge ", i))
	}
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&view=history&all=1", 1280, 500)
	p.wait("document.querySelectorAll('.log li').length === 26 && [...document.querySelectorAll('.ref')].length === 10")
	p.wait("[...document.querySelectorAll('.log svg')].every((s) => { const d = [...s.querySelectorAll('path')].map((e) => e.getAttribute('d')); return new Set(d).size === d.length; })")
	// Lines go on where they ended in the row above.
	p.wait(`(() => {
		const ends = (s, top) => [...s.querySelectorAll('path')].map((e) => e.getAttribute('d')).flatMap((d) => { const n = d.match(/[\d.]+/g).map(Number), v = /V/.test(d); const a = [n[0], n[1]], b = v ? [n[0], n[2]] : n.slice(-2); return [a, b].filter((q) => q[1] === (top ? 0 : 44)).map((q) => q[0]); });
		const all = [...document.querySelectorAll('.log svg')];
		return all.every((s, i) => i === 0 || [...new Set(ends(all[i - 1], false))].sort().join() === [...new Set(ends(s, true))].sort().join());
	})()`)
	eval[any](p, "document.getElementById('main').scrollTop = 300")
	p.do(chromedp.Sleep(100 * time.Millisecond))
	eval[any](p, "document.querySelectorAll('.log li a')[14].click()")
	p.wait("document.querySelectorAll('.log li')[14].classList.contains('chosen')")
	p.wait("document.getElementById('main').scrollTop === 300")
	p.view("db=x.zdb&view=care")
	p.shows("On disk")
	p.do(chromedp.NavigateBack())
	p.wait("document.querySelectorAll('.log li').length === 26 && document.getElementById('main').scrollTop === 300")
}

// A store of 10,000 arrays: only the rows in sight are elements of the page.
func TestManyArrays(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := t.TempDir()
	group := filepath.Join(dir, "many.zarr")
	doc := `{"zarr_format":3,"node_type":"array","shape":[8,8],"data_type":"int32","fill_value":1,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[8,8]}},"chunk_key_encoding":{"name":"default"},"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{}}`
	for i := range 10_000 {
		a := filepath.Join(group, fmt.Sprintf("a%05d", i))
		if err := os.MkdirAll(a, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(a, "zarr.json"), []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(group, "zarr.json"), []byte(`{"zarr_format":3,"node_type":"group","attributes":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, serve(t, dir, "ui", "many.zarr"), 1280, 800)
	p.shows("10,000 arrays")
	if n := eval[int](p, "document.querySelectorAll('.tree .row').length"); n > 200 {
		t.Errorf("%d rows", n)
	}
	p.do(chromedp.Focus(".tree"), chromedp.KeyEvent(kb.End))
	p.wait("[...document.querySelectorAll('.tree a')].some((a) => a.textContent === 'a09999')")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("location.hash.includes('a09999')")
	p.drawn()
	p.do(chromedp.SendKeys(".filter", "a0123"))
	p.shows("10 arrays found")
}

// Everything can be done with the keyboard.
func TestKeyboard(t *testing.T) {
	p := open(t, serve(t, weather(t), "ui", "weather.zdb"), 1280, 800)
	p.shows("Synthetic weather")
	p.do(chromedp.Focus(".tree"))
	p.do(chromedp.KeyEvent(kb.ArrowDown + kb.ArrowDown + kb.ArrowDown + kb.Enter))
	p.drawn()
	p.do(chromedp.Focus(".plane canvas"), chromedp.KeyEvent(kb.ArrowRight+kb.ArrowUp))
	p.wait("/element 0, \\d+, \\d+/.test(document.querySelector('.readout').innerText)")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("/pts=/.test(location.hash) && document.querySelector('.u-over')")
	p.do(chromedp.Focus(".plane canvas"), chromedp.KeyEvent("++"))
	p.wait("/win=/.test(location.hash)")
	p.do(chromedp.KeyEvent("0"))
	p.wait("!/win=/.test(location.hash)")
	p.do(chromedp.Focus("#tab-data"), chromedp.KeyEvent(kb.ArrowRight))
	p.wait("document.activeElement.id === 'tab-info'")
}

// No view is wider than a phone, and none has a script or a colour problem in the dark.
func TestWidths(t *testing.T) {
	url := serve(t, weather(t), "ui", "weather.zdb")
	for _, width := range []int{360, 768, 3840} {
		p := open(t, url, width, 800)
		p.wait("document.querySelector('main h1')")
		eval[any](p, "document.documentElement.dataset.theme = 'dark'")
		for hash, text := range map[string]string{"": "Synthetic", "&path=t2m&pts=1,2,3": "Along time", "&path=t2m&view=info": "grid of", "&view=history": "What changed", "&path=t2m&view=compare&from=v1.0": "outlined", "&view=care": "On disk"} {
			p.view("db=weather.zdb" + hash)
			p.shows(text)
			p.wait("!document.querySelector('.loading')")
			wide := eval[string](p, `(() => { const w = document.documentElement.clientWidth, m = document.querySelector('main'); if (document.documentElement.scrollWidth <= w && m.scrollWidth <= m.clientWidth) return ''; return [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > w).map((e) => e.tagName + '.' + e.className).join(' ') || 'scroll'; })()`)
			if wide != "" {
				t.Errorf("%d pixels, %s: too wide: %s", width, hash, wide)
			}
		}
	}
}

// A large array opens as fast as a small one. A very large plane shows a sample at once, and
// its requests end when one leaves.
func TestLarge(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "large.zdb")
	run(t, dir, "create", "large.zdb:cube", "--shape", "10000,1024,1024", "--chunks", "1,512,512", "--dtype", "float32", "--fill", "NaN")
	run(t, dir, "create", "large.zdb:plane", "--shape", "100000,100000", "--chunks", "500,500", "--dtype", "uint8", "--fill", "3")
	values := make([]float32, 1024*1024)
	for i := range values {
		values[i] = float32(i%1024) + float32(i/1024)
	}
	writeNpy(t, filepath.Join(dir, "v.npy"), []int{1024, 1024}, values)
	run(t, dir, "write", "large.zdb:cube", "-s", "0", "-i", "v.npy")
	url := serve(t, dir, "ui", "large.zdb")
	for _, of := range []string{"cold", "warm"} {
		p := open(t, url+"&path=cube", 1280, 800)
		p.wait(opaque + " > 100000")
		t.Logf("%s: first picture of 10,000 × 1,024 × 1,024 after %v ms", of, eval[float64](p, "Math.round(performance.getEntriesByType('resource').filter((e) => e.name.includes('/window?')).map((e) => e.responseEnd)[0])"))
		p.drawn()
	}
	p := open(t, url+"&path=plane", 1280, 800)
	p.wait(opaque + " > 100000")
	t.Logf("first picture of 100,000 × 100,000 after %v ms", eval[float64](p, "Math.round(performance.getEntriesByType('resource').filter((e) => e.name.includes('/window?')).map((e) => e.responseEnd)[0])"))
	p.shows("A first look from")
	p.view("db=large.zdb")
	p.wait("!document.querySelector('.plane')")
	before := len(p.requests())
	time.Sleep(time.Second)
	if after := p.requests(); len(after) > before {
		t.Errorf("requests after the picture was left: %s", after[before:])
	}
}

func (p *page) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var windows []string
	for _, u := range p.sent {
		if strings.Contains(u, "/window?") {
			windows = append(windows, u)
		}
	}
	return windows
}

// The root of a server leads to the page by a button.
func TestServed(t *testing.T) {
	dir := weather(t)
	url := serve(t, dir, "serve", "weather.zdb", "--listen", "127.0.0.1:0")
	base := url[:strings.Index(url, "/weather.zdb")]
	p := open(t, base+"/", 1280, 800)
	p.do(chromedp.Click("button"))
	p.shows("Synthetic weather")
	if got := eval[string](p, "location.pathname"); got != "/-/ui/" {
		t.Error(got)
	}
}

// A server with keys asks for one; the page then reads with that key.
func TestKeys(t *testing.T) {
	dir := weather(t)
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("viewer read 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir, "serve", "weather.zdb", "--listen", "127.0.0.1:0", "--keys", "keys")
	base := url[:strings.Index(url, "/weather.zdb")] + "/-/ui/"
	resp, err := http.Get(base)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.Status)
	}
	p := open(t, strings.Replace(base, "//", "//viewer:0123456789abcdef@", 1), 1280, 800)
	p.shows("Synthetic weather")
	p.view("db=weather.zdb&view=care")
	p.shows("None that you may see.")
}

// Types in comments of the page's modules hold, if the compiler of TypeScript is installed.
func TestTypes(t *testing.T) {
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("no tsc")
	}
	if out, err := exec.Command(tsc, "-p", "../jsconfig.json").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The pictures of the documentation, at two widths.
func TestScreenshots(t *testing.T) {
	images := os.Getenv("ZARRDB_IMAGES")
	if images == "" {
		t.Skip("set ZARRDB_IMAGES to a directory")
	}
	url := serve(t, weather(t), "ui", "weather.zdb")
	for _, size := range []struct {
		name          string
		width, height int
	}{{"", 1280, 800}, {"-phone", 360, 740}} {
		p := open(t, url, size.width, size.height)
		p.wait("document.querySelector('.tree a')")
		shot := func(name string) {
			p.wait("!document.querySelector('.loading') && !document.querySelector('.busy')")
			p.screenshot(filepath.Join(images, "ui-"+name+size.name+".png"))
		}
		p.view("db=weather.zdb")
		p.shows("Synthetic weather")
		shot("tree")
		p.view("db=weather.zdb&path=t2m&at=12,0,0&pts=12,70,40;12,30,100")
		p.drawn()
		p.wait("document.querySelectorAll('.u-over').length")
		shot("picture")
		p.view("db=weather.zdb&path=t2m&at=12,0,0&centre=0&coast=1&map=viridis")
		p.drawn()
		p.wait("[...document.querySelectorAll('.controls input')].some((i) => i.value === '0')")
		shot("map")
		p.view("db=weather.zdb&path=t2m&view=info")
		p.shows("grid of")
		shot("metadata")
		p.view("db=weather.zdb&path=t2m&view=history")
		p.shows("take the experiment")
		p.wait("document.querySelector('.changes')")
		shot("history")
		p.view("db=weather.zdb&path=t2m&view=compare&from=v1.0&to=main")
		p.shows("is outlined")
		p.wait("document.querySelectorAll('.three canvas').length === 3")
		shot("compare")
		p.view("db=weather.zdb&view=care")
		p.shows("On disk")
		shot("care")
	}
}

// Kinds of arrays that were shown wrongly: lines with a spike and between neighbours, values beyond
// float32, depths, colours of many pixels, and arrays in groups that are closed.
func TestKinds(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	create := func(path, shape, dtype, fill string, more ...string) {
		t.Helper()
		run(t, dir, append([]string{"create", "x.zdb:" + path, "--shape", shape, "--dtype", dtype, "--fill", fill}, more...)...)
	}
	create("spike", "100000", "int16", "0")
	create("tiny", "20,30", "float64", "1e-300")
	create("near", "4", "float64", "1")
	create("depth", "3", "int32", "0", "--dims", "depth", "--attrs", `{"positive":"down","units":"m"}`)
	create("in/a/sea", "3,4", "float32", "1", "--dims", "depth,x")
	create("in/a/section", "3,99", "float32", "1", "--dims", "depth,x")
	create("rgb", "1500,1500,3", "uint8", "200", "--dims", "y,x,c", "--chunks", "500,500,3")
	for i := range 10 {
		create(fmt.Sprintf("g%d/x/deep%d", i, i), "2,2", "int8", "0")
	}
	run(t, dir, "tag", "x.zdb", "base")
	for path, of := range map[string][2]string{"spike": {"54321", "1000"}, "tiny": {"3,4", "5e-300"}, "near": {"2", "1.0000000000000002"}, "depth": {"2", "1000"}, "rgb": {"1000:1002,1000:1002,0", "7"}} {
		run(t, dir, "write", "x.zdb:"+path, "-s", of[0], "--value", of[1])
	}
	p := open(t, serve(t, dir, "ui", "x.zdb")+"&path=spike", 1280, 900)
	p.shows("The least and the greatest of each")
	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.do(chromedp.Click(`//button[text()="Save CSV"]`))
	if lines := strings.Split(strings.TrimSpace(string(download(t, filepath.Join(downloads, "spike_dim_0.csv")))), "\n"); len(lines) != 100_001 || lines[54_322] != "54321,1000" {
		t.Errorf("%d lines", len(lines))
	}
	p.view("db=x.zdb&path=near")
	p.wait("document.querySelector('.u-over')")
	p.view("db=x.zdb&path=tiny")
	p.drawn()
	p.wait("document.querySelector('.bar figcaption').innerText.includes('1e-300')")
	p.view("db=x.zdb&path=in/a/sea")
	p.drawn()
	p.point(0.5, 0.02, false)
	p.wait("document.querySelector('.readout').innerText.includes('depth 0 m')")
	p.view("db=x.zdb&path=in/a/section") // metres and elements have no proportions
	p.drawn()
	p.wait("document.querySelector('main h1').innerText === 'in/a/section' && document.querySelector('.plane canvas').clientHeight > 0.4 * document.querySelector('.plane canvas').clientWidth")
	p.view("db=x.zdb&path=rgb&win=996:1006,996:1006")
	p.shows("Every element is drawn.")
	p.point(0.55, 0.5, false)
	p.shows("7, 200, 200")
	p.view("db=x.zdb&path=spike&view=compare&from=base")
	p.shows("1 value in 1 place differs, by 1000.")
	p.wait("document.querySelectorAll('.u-over').length === 2")
	p.do(chromedp.SendKeys(".filter", "deep7"))
	p.shows("1 array found")
	p.wait("[...document.querySelectorAll('.tree a')].some((a) => a.textContent === 'deep7')")
}

// The first picture takes few requests, of which only one comes before the window, and a step of a
// field of 181 × 360 takes few bytes.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:a/t", "--shape", "8,181,360", "--chunks", "1,181,360", "--dtype", "float32", "--dims", "time,lat,lon")
	values, noise := make([]float32, 0, 8*181*360), uint32(1)
	for i := range cap(values) {
		noise = noise*1664525 + 1013904223
		y, x := float64(i/360%181)*math.Pi/180, float64(i%360)*math.Pi/180
		values = append(values, float32(280+20*math.Sin(y)+8*math.Sin(3*x+float64(i/65160))+float64(noise>>8)/(1<<24)))
	}
	writeNpy(t, filepath.Join(dir, "t.npy"), []int{8, 181, 360}, values)
	run(t, dir, "write", "x.zdb:a/t", "-i", "t.npy")
	p := open(t, serve(t, dir, "ui", "x.zdb:a/t"), 1280, 800)
	p.drawn()
	p.wait("document.querySelectorAll('[role=treeitem]').length === 3")
	type entry struct {
		Name  string
		Size  int
		Start float64
		End   float64
	}
	entries := func() []entry {
		return eval[[]entry](p, "performance.getEntriesByType('resource').map((e) => ({ name: new URL(e.name).pathname.split('/-/')[1], size: e.encodedBodySize, start: e.startTime, end: e.responseEnd }))")
	}
	first := entries()
	if len(first)+1 > 12 { // and the page itself
		t.Errorf("%d requests: %v", len(first)+1, first)
	}
	window := slices.IndexFunc(first, func(e entry) bool { return e.Name == "api/window" })
	if window < 0 {
		t.Fatal(first)
	}
	t.Logf("the first window came after %.0f ms", first[window].End)
	before := 0
	for _, e := range first {
		if strings.HasPrefix(e.Name, "api/") && e.Name != "api/ls" && e.End < first[window].Start {
			before++
		}
	}
	if before != 1 { // start; the tree lists groups beside it
		t.Errorf("%d answers before the first window: %v", before, first)
	}
	eval[any](p, "performance.clearResourceTimings()")
	for i := 1; i < 8; i++ {
		p.view(fmt.Sprintf("db=x.zdb&path=a/t&at=%d,0,0", i))
		p.wait(fmt.Sprintf("document.querySelector('.slider output').innerText.startsWith('%d ')", i))
	}
	steps := 0
	for _, e := range entries() {
		if e.Name == "api/window" {
			if steps++; e.Size > 60<<10 {
				t.Errorf("a step takes %d bytes", e.Size)
			}
		}
	}
	if steps != 7 {
		t.Errorf("%d windows for 7 steps", steps)
	}
}

// Channels of a microscope are added in their colours, with a scale bar.
func TestChannels(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	run(t, dir, "create", "x.zdb:image/0", "--shape", "2,40,60", "--dtype", "uint16", "--dims", "c,y,x", "--fill", "0")
	run(t, dir, "write", "x.zdb:image/0", "-s", "0", "--value", "1000")
	run(t, dir, "write", "x.zdb:image/0", "-s", "1,:,30:", "--value", "300")
	run(t, dir, "attrs", "x.zdb:image", "--set", `ome={"version":"0.5","multiscales":[{"axes":[{"name":"c","type":"channel"},{"name":"y","type":"space","unit":"micrometer"},{"name":"x","type":"space","unit":"micrometer"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,0.5,0.5]}]}]}],"omero":{"channels":[{"label":"DAPI","color":"0000ff","window":{"start":0,"end":2000}},{"label":"GFP","color":"00FF00","window":{"start":100,"end":300}}]}}`)
	p := open(t, serve(t, dir, "ui", "x.zdb:image"), 1280, 800)
	p.drawn()
	pixel := `((fx, fy) => { const c = document.querySelector('.plane canvas'), k = c.width / c.clientWidth; return [...c.getContext('2d').getImageData(k * (62 + fx * (c.clientWidth - 72)), k * (8 + fy * (c.clientHeight - 42)), 1, 1).data].slice(0, 3).join(); })`
	p.wait(pixel + "(0.2, 0.2) === '0,0,128' && " + pixel + "(0.8, 0.2) === '0,255,128'")
	p.point(0.8, 0.3, false)
	p.wait("document.querySelector('.readout strong').innerText === 'DAPI 1000, GFP 300'")
	has := func(sel, csv string) string {
		return `document.querySelector('.commands textarea').value.includes(' -s ` + sel + ` ') && ` + csv + `[...document.querySelectorAll('button')].some((b) => b.innerText === 'csv')`
	}
	p.wait(has(":,:,:", "!")) // the values of both
	downloads := t.TempDir()
	p.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.do(chromedp.Click(`//button[text()="Save PNG"]`)) // a figure of both, and not the canvas
	img, err := png.Decode(bytes.NewReader(download(t, filepath.Join(downloads, "image_0.png"))))
	if err != nil || img.Bounds().Dx() <= 900 || color.NRGBAModel.Convert(img.At(img.Bounds().Dx()-60, 60)) != (color.NRGBA{0, 255, 128, 255}) {
		t.Errorf("%v %v", err, img.At(img.Bounds().Dx()-60, 60))
	}
	p.do(chromedp.Click(`//label[contains(., "DAPI")]/input`))
	p.wait(pixel + "(0.8, 0.2) === '0,255,0' && location.hash.includes('ch=1')")
	p.point(0.8, 0.3, false)
	p.wait("document.querySelector('.readout strong').innerText === 'GFP 300' && " + has("1,:,:", ""))
	p.do(chromedp.Click(`//label[contains(., "GFP")]/input`)) // none: one channel, in a map of colours
	p.wait("document.querySelector('.bar') && document.querySelector('.slider')")
}

// Pixels and the value under the pointer of random arrays are those that were written, whatever the
// orientation of their axes.
func TestRandomPictures(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "x.zdb")
	r := rand.New(rand.NewPCG(7, 8))
	type random struct {
		rows, cols int
		values     []float32
		up         bool
	}
	var all []random
	for k := range 8 {
		a := random{rows: 3 + r.IntN(30), cols: 3 + r.IntN(40), up: k%2 == 1}
		for range a.rows * a.cols {
			v := float32(math.Round(r.NormFloat64()*1000) / 8)
			if r.IntN(12) == 0 {
				v = float32(math.NaN())
			}
			a.values = append(a.values, v)
		}
		y := make([]float32, a.rows)
		for i := range y {
			y[i] = float32(i)
			if a.up != (k%4 < 2) { // a depth, with the least value on top
				y[i] = -y[i]
			}
		}
		group := fmt.Sprintf("x.zdb:g%d/", k)
		for _, of := range []struct {
			name, dims string
			shape      []int
			values     []float32
		}{{"v", "y,x", []int{a.rows, a.cols}, a.values}, {"y", "y", []int{a.rows}, y}} {
			shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(of.shape), "[]"), " ", ",")
			run(t, dir, "create", group+of.name, "--shape", shape, "--dtype", "float32", "--dims", of.dims, "--fill", "NaN")
			writeNpy(t, filepath.Join(dir, "a.npy"), of.shape, of.values)
			run(t, dir, "write", group+of.name, "-i", "a.npy")
		}
		if k%4 >= 2 {
			run(t, dir, "attrs", group+"y", "--set", "positive=down")
		}
		all = append(all, a)
	}
	url := serve(t, dir, "ui", "x.zdb")
	p := open(t, url, 1280, 800)
	again := make([]string, len(all)) // the same in Firefox: pixels, and the pointer at the last of them
	var last [][2]float64
	for k, a := range all {
		p.view(fmt.Sprintf("db=x.zdb&path=g%d/v&map=grey&lo=-200&hi=200", k))
		p.drawn()
		p.wait(fmt.Sprintf("document.querySelector('main h1').innerText === 'g%d/v'", k))
		for n := range 12 {
			i, j := r.IntN(a.rows), r.IntN(a.cols)
			fy := (float64(i) + 0.5) / float64(a.rows)
			if a.up {
				fy = 1 - fy
			}
			fx, v := (float64(j)+0.5)/float64(a.cols), float64(a.values[i*a.cols+j])
			at := fmt.Sprintf(`(() => { const c = document.querySelector('.plane canvas'), k = c.width / c.clientWidth; return [...c.getContext('2d').getImageData(k * (62 + %g * (c.clientWidth - 72)), k * (8 + %g * (c.clientHeight - 42)), 1, 1).data]; })()`, fx, fy)
			pixel := eval[[]int](p, at)
			if v == v {
				again[k] += fmt.Sprintf("Math.abs(%s[0] - %d) < 2 && ", at, pixel[0])
			}
			if want := 255 * min(max((v+200)/400, 0), 1); v == v && math.Abs(float64(pixel[0])-want) > 1.1 || v != v && pixel[0] != 0x8c && pixel[0] != 0x7a && (pixel[0] < 0x7a || pixel[0] > 0x8c) {
				t.Errorf("g%d: element %d, %d is %v: the pixel is %v, want %.1f", k, i, j, v, pixel, want)
			}
			p.point(fx, fy, false)
			text := strconv.FormatFloat(v, 'f', -1, 32)
			if v != v {
				text = "missing"
			}
			p.wait(fmt.Sprintf("document.querySelector('.readout').innerText.includes('element %d, %d') && document.querySelector('.readout strong').innerText === '%s'", i, j, text))
			if n == 11 {
				again[k] += fmt.Sprintf("document.querySelector('.readout').innerText.includes('element %d, %d') && document.querySelector('.readout strong').innerText === '%s'", i, j, text)
				last = append(last, [2]float64{fx, fy})
			}
		}
	}
	t.Run("Firefox", func(t *testing.T) {
		f := openFirefox(t, url)
		for k := range all {
			f.view(fmt.Sprintf("db=x.zdb&path=g%d/v&map=grey&lo=-200&hi=200", k))
			f.wait(fmt.Sprintf("document.querySelector('main h1')?.innerText === 'g%d/v' && document.querySelector('.plane canvas') && !document.querySelector('.busy') && /is drawn/.test(document.body.innerText)", k))
			f.at(last[k][0], last[k][1], "pointer", map[string]any{"type": "pointerMove"})
			f.wait(again[k])
		}
	})
}
