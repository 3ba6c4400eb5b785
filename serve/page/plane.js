// A plane of an array on a canvas: it asks for the window in sight, draws it with axes, and
// lets one zoom, pan and point.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './lib/preact-htm.js';
import { cancelled, getBytes, getOnce } from './api.js';
import { hatch, paint } from './colour.js';
import { useWidth } from './parts.js';
import * as text from './text.js';

/** @typedef {{ dim: number, start: number, step: number, len: number, skip: number }} Line */
/** @typedef {{ at: number, value: number, text: string }} Tick */
/** @typedef {import('./colour.js').Limits} Limits */
/**
 * A window of an array, as the server describes it: each element is a shade, 0 if it is missing, or red, green, blue and opacity.
 * @typedef {{ shades: Uint8Array, pixels: boolean, y: Line, x: Line, chunks: number, type: string, times: boolean, full: boolean,
 *   limits: Limits, ends: string[], all: Limits | null, most: Limits | null, bins: number[], missing: number, under: number, over: number, bar: { at: number, text: string }[], classes?: { value: string, text: string, colour: string, count: number }[], at: string[], ticks: { y: Tick[], x: Tick[] }, level?: number, mask?: Win | null }} Win
 */
/** @typedef {{ y0: number, y1: number, x0: number, x1: number }} View in elements, from the edge of the first to that of the last */

/**
 * Reads a window of an array.
 * @param {import('./main.js').Shown} shown @param {string} rev @param {string} path
 * @param {{ at: number[], y: number, x: number, raw: boolean }} plane the two axes, and the indices of the others
 * @param {View} view @param {any} o the most rows, columns and chunks; from asks for the difference from that version, limits gives the ends of the colours
 * @param {AbortSignal} [signal]
 * @returns {Promise<Win>}
 */
export async function readWindow(shown, rev, path, plane, view, o, signal) {
  const range = (/** @type {number} */ a, /** @type {number} */ b) => `${Math.max(0, Math.floor(a))}:${Math.ceil(b)}`;
  const select = plane.at.map((i, d) => (d === plane.y ? range(view.y0, view.y1) : d === plane.x ? range(view.x0, view.x1) : String(i)));
  if (o.colour) select[select.length - 1] = ':';
  const see = o.see || {}, pair = (/** @type {number[] | undefined} */ v) => v && `${Math.max(0, Math.floor(v[0]))},${Math.ceil(v[1])}`;
  const { head, bytes } = await getBytes('window', {
    db: shown.db, rev, path, select: select.join(','), width: o.width, height: o.height, chunks: o.chunks, as: o.as || 'colours',
    transposed: plane.y > plane.x ? '1' : false, decode: plane.raw ? false : 'cf', from: o.from || false, lo: o.limits?.lo, hi: o.limits?.hi, log: o.limits?.log && '1', channels: o.channels || false, caxis: o.channels ? o.caxis : false,
    numbers: o.colour ? false : '1', guess: o.colour ? '1' : false, of: see.of, ysee: pair(see.ysee), xsee: pair(see.xsee), yticks: o.yticks || false, xticks: o.xticks || false, centre: o.centre || false,
  }, signal);
  const about = JSON.parse(head.get('Zarrdb-Window') || '{}');
  const shades = new Uint8Array(bytes);
  if (about.classes) { // their texts come with the axes: a header has no room for many
    const counts = new Array(256).fill(0);
    for (const s of shades) counts[s]++;
    const { classes } = await getOnce('axes', { db: shown.db, rev, path: see.of || path });
    about.classes = classes.map((/** @type {any} */ c, /** @type {number} */ i) => ({ ...c, value: plane.raw ? c.stored || c.value : c.value, count: counts[i + 1] }));
  }
  const least = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ most) => Math.floor((Math.ceil(b) - Math.floor(a) - 1) / most) + 1;
  const full = about.y.skip <= least(view.y0, view.y1, o.height) && about.x.skip <= least(view.x0, view.x1, o.width) && !about.more;
  return { ...about, type: about.data_type, pixels: !!about.pixels, times: !!about.times, shades, full };
}

/** The first requests read few chunks, so that something shows at once. */
const firstChunks = 32, mostChunks = 1 << 18;

/**
 * The windows of a view, better ones as they come. The requests end when the view changes; while it
 * changes, the picture before stays until the next one has come, so that each that was asked for in
 * turn is shown on a slow link too.
 * @param {(view: View, o: any, signal: AbortSignal) => Promise<Win>} load
 * @param {string} key of what load loads @param {View | null} view @param {number} width @param {number} height @param {any} [more] of the request
 * @returns {{ win: Win | null, base: Win | null, error: any, busy: boolean, key: string }} the picture, and the key that it is of
 */
export function useWindow(load, key, view, width, height, more) {
  const [state, set] = useState(/** @type {any} */ ({ win: null, base: null, error: null, busy: false, key: '' }));
  const area = view && JSON.stringify([view.y0, view.y1, view.x0, view.x1].map((n) => Math.round(n * 100)));
  const wanted = useRef(/** @type {any} */ (null)), running = useRef(/** @type {any} */ (null)), stopped = useRef(new AbortController());
  useEffect(() => () => {
    stopped.current.abort();
    if (running.current) running.current.stop.abort();
  }, []);
  useLayoutEffect(() => { // before the browser draws, which takes longer than an answer
    if (!view || !width || !height) return;
    const want = { load, key, view, area, stop: new AbortController(), o: { width: Math.min(1024, width), height: Math.min(1024, height), yticks: Math.max(2, Math.floor(height / 44)), xticks: Math.max(2, Math.floor(width / 72)), ...more } };
    const before = running.current;
    if (before && (before.area !== area || before.got)) before.stop.abort(); // the first picture of a step is still wanted
    wanted.current = want;
    set((/** @type {any} */ s) => ({ ...s, busy: true }));
    const run = async () => {
      for (let w = wanted.current, chunks = firstChunks; ;) {
        running.current = w;
        try {
          const win = await w.load(w.view, { ...w.o, chunks }, w.stop.signal);
          if (stopped.current.signal.aborted) return;
          const done = win.full || chunks >= mostChunks;
          const now = w;
          w.got = true;
          if (!w.stop.signal.aborted) set((/** @type {any} */ s) => ({ win, base: s.key === now.key && s.base ? s.base : win, error: null, busy: !done || wanted.current !== now, key: now.key }));
          chunks *= 8;
          if (done && wanted.current === w) break;
        } catch (error) {
          if (stopped.current.signal.aborted) return;
          const now = w;
          if (!cancelled(error) && wanted.current === w) {
            set((/** @type {any} */ s) => ({ ...s, error, busy: false, win: null, base: null, key: now.key }));
            break;
          }
        }
        if (wanted.current !== w) {
          w = wanted.current;
          chunks = firstChunks;
        }
      }
      running.current = null;
    };
    if (!running.current) run();
  }, [key, area, width, height]);
  return state;
}

/** The size of the text of the page, and the margins for labels. */
function margins(/** @type {Tick[]} */ labels) {
  const font = parseFloat(getComputedStyle(document.body).fontSize) || 15, k = font / 15;
  const wide = Math.max(0, ...labels.map((t) => t.text.length)); // labels are never cut
  return { font: Math.round(12 * k), wide: wide > 5, left: Math.max(62, wide * 7.7 + 8) * k, right: 10 * k, top: 8, bottom: 34 * k };
}

/** Height of a whole picture for its width. @param {import('./coords.js').Axis} y @param {import('./coords.js').Axis} x */
export function proportion(y, x) {
  const ratio = y.length / x.length;
  return y.kind === x.kind ? ratio : Math.min(1, Math.max(0.5, ratio));
}

/** The colours of the theme. @param {Element} el */
function theme(el) {
  const s = getComputedStyle(el);
  return { ink: s.getPropertyValue('--ink').trim(), dim: s.getPropertyValue('--dim').trim(), line: s.getPropertyValue('--line').trim(), mark: s.getPropertyValue('--mark').trim(), paper: s.getPropertyValue('--paper').trim() };
}

/**
 * @param {object} p
 * @param {{ win: Win | null, base: Win | null, busy: boolean }} p.shown
 * @param {import('./colour.js').Map | undefined} p.map
 * @param {import('./coords.js').Axis} p.yAxis
 * @param {import('./coords.js').Axis} p.xAxis
 * @param {boolean} p.up whether the first row is at the bottom
 * @param {View} p.view
 * @param {(v: View) => void} p.setView
 * @param {(width: number, height: number) => void} p.onSize
 * @param {(at: { y: number, x: number } | null) => void} [p.onPoint] under the pointer
 * @param {(at: { y: number, x: number }) => void} [p.onPick] clicked
 * @param {{ y: number, x: number, colour: string }[]} [p.marks]
 * @param {{ y: number, x: number, height: number, width: number, fill?: string }[]} [p.boxes] in elements
 * @param {number[][]} [p.coast] lines: across and down, in elements, in turn
 * @param {number} [p.most] of the height
 * @param {number} [p.opacity] of labels over the picture
 * @param {string} p.name
 * @param {any} [p.canvas] a ref
 */
export function Plane({ shown, map, yAxis, xAxis, up, view, setView, onSize, onPoint, onPick, marks = [], boxes = [], coast = [], most = 0.62, opacity = 0.5, name, canvas }) {
  const [box, width] = useWidth();
  const own = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const ref = canvas || own;
  const [cursor, setCursor] = useState(/** @type {{ y: number, x: number } | null} */ (null));
  const [dark, setDark] = useState(0);
  const rows = yAxis.length, cols = xAxis.length;
  const pad = margins((shown.win && shown.win.ticks.y) || []);
  const inner = Math.max(40, width - pad.left - pad.right);
  const ratio = proportion(yAxis, xAxis), free = yAxis.kind !== xAxis.kind;
  const tall = Math.max(160, innerHeight * most);
  let plotW = inner, plotH = Math.min(tall, Math.max(ratio < 1 / 6 ? 120 : 160, inner * Math.min(ratio, 1.2)));
  if (ratio > 1 / 6 && ratio < 6 && !free) plotW = Math.min(inner, Math.max(100, plotH / ratio));
  plotH = Math.round(plotH);
  plotW = Math.round(plotW);
  const scale = Math.min(3, devicePixelRatio || 1);

  useEffect(() => { if (width) onSize(Math.ceil(plotW * scale), Math.ceil(plotH * scale)); }, [plotW, plotH, scale, !!width]);
  useEffect(() => {
    const f = () => setDark((n) => n + 1);
    const media = matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', f);
    addEventListener('themechange', f);
    return () => {
      media.removeEventListener('change', f);
      removeEventListener('themechange', f);
    };
  }, []);

  // Uneven elements are drawn with sizes of their own.
  const part = (/** @type {import('./coords.js').Axis} */ axis, /** @type {number} */ p, /** @type {number} */ a, /** @type {number} */ b) => (axis.place(p) - axis.place(a)) / (axis.place(b) - axis.place(a));
  const whole = (/** @type {import('./coords.js').Axis} */ axis, /** @type {number} */ f, /** @type {number} */ a, /** @type {number} */ b) => axis.element(axis.place(a) + f * (axis.place(b) - axis.place(a)));
  const toX = (/** @type {number} */ x) => pad.left + part(xAxis, x, view.x0, view.x1) * plotW;
  const toY = (/** @type {number} */ y) => {
    const f = part(yAxis, y, view.y0, view.y1);
    return pad.top + (up ? 1 - f : f) * plotH;
  };
  const fromPlace = (/** @type {number} */ px, /** @type {number} */ py) => {
    const fx = (px - pad.left) / plotW, fy = (py - pad.top) / plotH;
    return { x: whole(xAxis, fx, view.x0, view.x1), y: whole(yAxis, up ? 1 - fy : fy, view.y0, view.y1), inside: fx >= 0 && fx <= 1 && fy >= 0 && fy <= 1 };
  };

  const layers = useMemo(() => {
    if (!map) return [];
    return [...new Set([shown.base, shown.win])].filter((w) => !!w).map((w) => ({ w: /** @type {Win} */ (w), img: paint(/** @type {Win} */ (w), map), mask: w?.mask && paint(w.mask, map) }));
  }, [shown.base, shown.win, map]);

  useLayoutEffect(() => {
    const c = ref.current;
    if (!c || !width) return;
    const W = plotW + pad.left + pad.right, H = plotH + pad.top + pad.bottom;
    c.width = Math.round(W * scale);
    c.height = Math.round(H * scale);
    c.style.width = W + 'px';
    c.style.height = H + 'px';
    const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
    const colours = theme(c);
    g.scale(scale, scale);
    g.save();
    g.beginPath();
    g.rect(pad.left, pad.top, plotW, plotH);
    g.clip();
    g.imageSmoothingEnabled = false;
    const draw = (/** @type {CanvasImageSource} */ img, /** @type {number} */ y0, /** @type {number} */ y1, /** @type {number} */ x0, /** @type {number} */ x1) => {
      const l = toX(x0), t = Math.min(toY(y0), toY(y1)), w = toX(x1) - l, h = Math.abs(toY(y1) - toY(y0));
      g.save();
      g.translate(l, up ? t + h : t);
      g.scale(1, up ? -1 : 1);
      g.drawImage(img, 0, 0, w, h);
      g.restore();
    };
    if (layers.length) {
      g.fillStyle = hatch(g);
      const l = Math.max(pad.left, toX(0)), t = Math.max(pad.top, Math.min(toY(0), toY(rows)));
      g.fillRect(l, t, toX(cols) - l, Math.max(toY(0), toY(rows)) - t);
    }
    for (const { w, img, mask } of layers) {
      let from = /** @type {HTMLCanvasElement} */ (img);
      if (xAxis.edges) { // columns of their sizes, then rows
        from = document.createElement('canvas');
        from.width = Math.max(1, Math.round(plotW * scale));
        from.height = w.y.len;
        const f = /** @type {CanvasRenderingContext2D} */ (from.getContext('2d'));
        f.imageSmoothingEnabled = false;
        const end = w.x.start + w.x.step * w.x.len, at = (/** @type {number} */ k) => Math.round(part(xAxis, Math.min(cols, w.x.start + k * w.x.step), w.x.start, Math.min(cols, end)) * from.width);
        for (let k = 0; k < w.x.len; k++) f.drawImage(img, k, 0, 1, w.y.len, at(k), 0, at(k + 1) - at(k), w.y.len);
      }
      const x1 = Math.min(xAxis.edges ? cols : Infinity, w.x.start + w.x.step * w.x.len);
      if (!yAxis.edges) draw(from, w.y.start, w.y.start + w.y.step * w.y.len, w.x.start, x1);
      else {
        const l = toX(w.x.start), width = toX(x1) - l, at = (/** @type {number} */ k) => Math.round(toY(Math.min(rows, w.y.start + k * w.y.step)) * scale) / scale;
        for (let k = 0; k < w.y.len; k++) g.drawImage(from, 0, k, from.width, 1, l, Math.min(at(k), at(k + 1)), width, Math.abs(at(k + 1) - at(k)));
      }
      if (!mask || !w.mask) continue;
      const { y, x } = w.mask;
      g.globalAlpha = opacity;
      draw(mask, y.start, y.start + y.step * y.len, x.start, x.start + x.step * x.len);
      g.globalAlpha = 1;
    }
    for (const [w, style] of /** @type {[number, string][]} */ ([[2.5, '#fff9'], [1, '#000c']])) { // seen on every colour
      g.lineWidth = w;
      g.strokeStyle = style;
      g.beginPath();
      for (const l of coast) for (let i = 0; i < l.length; i += 2) g[i ? 'lineTo' : 'moveTo'](toX(l[i]), toY(l[i + 1]));
      g.stroke();
    }
    for (const b of boxes) {
      let l = toX(b.x), t = Math.min(toY(b.y), toY(b.y + b.height)), w = toX(b.x + b.width) - l, h = Math.abs(toY(b.y + b.height) - toY(b.y));
      if (!b.fill) { // an outline does not cover what is in it
        const x = Math.max(0, 9 - w), y = Math.max(0, 9 - h);
        l -= x / 2;
        w += x;
        t -= y / 2;
        h += y;
      }
      if (b.fill) {
        g.fillStyle = b.fill;
        g.fillRect(l, t, w, h);
        g.strokeStyle = colours.paper;
      } else {
        g.strokeStyle = colours.paper;
        g.lineWidth = 3.5;
        g.strokeRect(l, t, w, h);
        g.strokeStyle = colours.mark;
      }
      g.lineWidth = 1.5;
      g.strokeRect(l, t, w, h);
    }
    const cross = (/** @type {number} */ y, /** @type {number} */ x, /** @type {string} */ colour) => {
      const px = toX(x + 0.5), py = toY(y + 0.5);
      for (const [w, style] of /** @type {[number, string][]} */ ([[4, colours.paper], [2, colour]])) {
        g.lineWidth = w;
        g.strokeStyle = style;
        g.beginPath();
        g.arc(px, py, 5, 0, 7);
        g.stroke();
      }
    };
    for (const m of marks) cross(m.y, m.x, m.colour);
    if (cursor && document.activeElement === c) cross(cursor.y, cursor.x, colours.ink);
    if (xAxis.size && xAxis.unit && layers.length) { // a scale bar of a round length, at most a fifth of the width
      const per = xAxis.size * (view.x1 - view.x0) / plotW, power = 10 ** Math.floor(Math.log10(per * plotW / 5)), n = [5, 2, 1].find((m) => m * power <= per * plotW / 5) || 1;
      const long = n * power / per, label = `${Number((n * power).toPrecision(2))} ${/** @type {any} */ ({ micrometer: 'µm', nanometer: 'nm', millimeter: 'mm' })[xAxis.unit] || xAxis.unit}`;
      const l = pad.left + plotW - long - 12, t = pad.top + plotH - 14;
      g.font = `600 ${pad.font}px system-ui, sans-serif`;
      g.textAlign = 'center';
      g.textBaseline = 'bottom';
      const wide = Math.max(long, g.measureText(label).width);
      g.fillStyle = '#000a';
      g.fillRect(l + long / 2 - wide / 2 - 6, t - pad.font - 9, wide + 12, pad.font + 18);
      g.fillStyle = '#fff';
      g.fillRect(l, t, long, 3);
      g.fillText(label, l + long / 2, t - 3);
    }
    g.restore();
    g.strokeStyle = colours.line;
    g.lineWidth = 1;
    g.strokeRect(pad.left - 0.5, pad.top - 0.5, plotW + 1, plotH + 1);
    g.fillStyle = colours.ink;
    g.font = `${pad.font}px system-ui, sans-serif`;
    g.textBaseline = 'middle';
    const ticks = shown.win ? shown.win.ticks : { y: [], x: [] };
    let free = Infinity, rise = up ? 1 : -1;
    for (const { at, text } of [...(ticks.y || [])].sort((a, b) => rise * (a.at - b.at))) {
      const y = toY(at);
      if (y < pad.top - 1 || y > pad.top + plotH + 1 || y > free) continue;
      g.textAlign = 'right';
      g.fillText(text, pad.left - 8, y);
      line(g, pad.left - 5, y, pad.left, y);
      free = y - 1.2 * pad.font;
    }
    g.textBaseline = 'top';
    free = -Infinity;
    for (const { at, text } of ticks.x || []) {
      const x = toX(at), half = g.measureText(text).width / 2, mid = Math.min(x, W - half - 1);
      if (x < pad.left - 1 || x > pad.left + plotW + 1 || mid - half < free) continue;
      g.textAlign = 'center';
      g.fillText(text, mid, pad.top + plotH + 6);
      line(g, x, pad.top + plotH, x, pad.top + plotH + 5);
      free = mid + half + 8;
    }
    g.fillStyle = colours.dim;
    g.textAlign = 'right';
    g.fillText(xAxis.title, W - pad.right, pad.top + plotH + 8 + pad.font);
    if (pad.wide) { // no room beside the labels
      g.textAlign = 'left';
      g.fillText(clip(g, `${yAxis.title} ↕`, plotW / 2), 1, pad.top + plotH + 8 + pad.font);
    } else {
      g.save();
      g.translate(1, pad.top + plotH / 2);
      g.rotate(-Math.PI / 2);
      g.textAlign = 'center';
      g.fillText(clip(g, yAxis.title, plotH), 0, 0);
      g.restore();
    }
  });

  const clamp = (/** @type {View} */ v) => {
    const fit = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ n) => {
      const span = Math.min(n, Math.max(Math.min(4, n), b - a)), from = Math.min(n - span, Math.max(0, a + (b - a - span) / 2));
      return [from, from + span];
    };
    const [y0, y1] = fit(v.y0, v.y1, rows), [x0, x1] = fit(v.x0, v.x1, cols);
    setView({ y0, y1, x0, x1 });
  };
  const zoom = (/** @type {number} */ f, /** @type {{ y: number, x: number } | undefined} */ at) => {
    const c = at || { y: (view.y0 + view.y1) / 2, x: (view.x0 + view.x1) / 2 };
    clamp({ y0: c.y + (view.y0 - c.y) * f, y1: c.y + (view.y1 - c.y) * f, x0: c.x + (view.x0 - c.x) * f, x1: c.x + (view.x1 - c.x) * f });
  };
  const pan = (/** @type {number} */ dy, /** @type {number} */ dx) => clamp({ y0: view.y0 + dy, y1: view.y1 + dy, x0: view.x0 + dx, x1: view.x1 + dx });
  const place = (/** @type {PointerEvent | WheelEvent} */ e) => {
    const r = /** @type {HTMLCanvasElement} */ (ref.current).getBoundingClientRect();
    return fromPlace(e.clientX - r.left, e.clientY - r.top);
  };
  const element = (/** @type {{ y: number, x: number }} */ p) => ({ y: Math.min(rows - 1, Math.max(0, Math.floor(p.y))), x: Math.min(cols - 1, Math.max(0, Math.floor(p.x))) });
  const held = useRef(/** @type {Map<number, { x: number, y: number }>} */ (new Map()));
  const moved = useRef(0);

  const down = (/** @type {PointerEvent} */ e) => {
    if (e.button) return;
    held.current.set(e.pointerId, { x: e.clientX, y: e.clientY });
    moved.current = held.current.size > 1 ? 99 : 0;
    /** @type {Element} */ (e.currentTarget).setPointerCapture(e.pointerId);
  };
  const move = (/** @type {PointerEvent} */ e) => {
    const last = held.current.get(e.pointerId);
    const p = place(e);
    onPoint && onPoint(p.inside ? element(p) : null);
    if (!last) return;
    const others = [...held.current].filter(([id]) => id !== e.pointerId).map(([, v]) => v);
    if (others.length === 1) { // two fingers
      const o = others[0], was = Math.hypot(last.x - o.x, last.y - o.y), is = Math.hypot(e.clientX - o.x, e.clientY - o.y);
      if (was > 0 && is > 0) zoom(was / is, p);
    } else {
      const dx = e.clientX - last.x, dy = e.clientY - last.y;
      moved.current += Math.abs(dx) + Math.abs(dy);
      if (moved.current > 4) pan((up ? dy : -dy) * (view.y1 - view.y0) / plotH, -dx * (view.x1 - view.x0) / plotW);
    }
    held.current.set(e.pointerId, { x: e.clientX, y: e.clientY });
  };
  const release = (/** @type {PointerEvent} */ e) => {
    if (!held.current.delete(e.pointerId)) return;
    const p = place(e);
    if (e.type === 'pointerup' && moved.current <= 4 && p.inside && onPick) onPick(element(p));
  };
  useEffect(() => { // a wheel listener of the framework would be passive
    const c = ref.current;
    if (!c) return;
    const wheel = (/** @type {WheelEvent} */ e) => {
      if (e.deltaY > 0 && isWhole && !e.ctrlKey && !e.metaKey) return; // the page scrolls
      e.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), place(e));
    };
    c.addEventListener('wheel', wheel, { passive: false });
    return () => c.removeEventListener('wheel', wheel);
  });
  const key = (/** @type {KeyboardEvent} */ e) => {
    const arrow = { ArrowUp: [up ? 1 : -1, 0], ArrowDown: [up ? -1 : 1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
    const dy = Math.max(1, Math.round((view.y1 - view.y0) / 40)), dx = Math.max(1, Math.round((view.x1 - view.x0) / 40));
    if (arrow && e.shiftKey) pan(arrow[0] * 4 * dy, arrow[1] * 4 * dx);
    else if (arrow) {
      const from = cursor || element({ y: (view.y0 + view.y1) / 2, x: (view.x0 + view.x1) / 2 });
      const step = e.altKey ? [1, 1] : [dy, dx];
      const next = element({ y: from.y + arrow[0] * step[0], x: from.x + arrow[1] * step[1] });
      setCursor(next);
      onPoint && onPoint(next);
    } else if (e.key === '+' || e.key === '=') zoom(0.6, cursor || undefined);
    else if (e.key === '-') zoom(1 / 0.6, cursor || undefined);
    else if (e.key === '0') clamp({ y0: 0, y1: rows, x0: 0, x1: cols });
    else if (e.key === 'Enter' && cursor && onPick) onPick(cursor);
    else return;
    e.preventDefault();
  };
  const isWhole = view.y0 <= 0 && view.x0 <= 0 && view.y1 >= rows && view.x1 >= cols;
  return html`<div class="plane" ref=${box}>
    <canvas ref=${ref} tabindex="0" role="application" aria-label=${`${name}. Arrows move the pointer, Enter picks, plus and minus zoom, Shift and arrows pan, 0 shows all.`}
      onPointerDown=${down} onPointerMove=${move} onPointerUp=${release} onPointerCancel=${release} onPointerLeave=${() => onPoint && onPoint(null)}
      onKeyDown=${key} onFocus=${() => setDark((n) => n + 1)} onBlur=${() => setDark((n) => n + 1)} onDblClick=${(/** @type {any} */ e) => zoom(0.5, place(e))} />
    <div class="zoom"><button aria-label="Zoom in" title="Zoom in (+)" onClick=${() => zoom(0.6, undefined)}>+</button><button aria-label="Zoom out" title="Zoom out (-)" disabled=${isWhole} onClick=${() => zoom(1 / 0.6, undefined)}>−</button><button
      aria-label="Show all" title="Show all (0)" disabled=${isWhole} onClick=${() => clamp({ y0: 0, y1: rows, x0: 0, x1: cols })}>⤢</button>
      ${shown.busy && html`<span class="busy" role="status">reading…</span>`}</div>
  </div>`;
}

/** @param {CanvasRenderingContext2D} g @param {string} s @param {number} width */
function clip(g, s, width) {
  if (g.measureText(s).width <= width) return s;
  while (s.length > 2 && g.measureText(s + '…').width > width) s = s.slice(0, -1);
  return s + '…';
}

/** @param {CanvasRenderingContext2D} g @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}
