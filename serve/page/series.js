// Values along an axis as lines, for several points.
import { html, useEffect, useRef, useState } from './lib/preact-htm.js';
import { get } from './api.js';
import { go, useLoad } from './state.js';
import * as text from './text.js';
import { Failure, Loading, useWidth } from './parts.js';

/** Colours of lines with contrast on light and dark, also to eyes that see few of them. */
const colours = ['#c2410c', '#2470c4', '#15803d', '#a21caf', '#8a6d00', '#0e7490', '#be123c', '#6d5bd0'];

/** @param {number} i */
export const seriesColour = (i) => colours[i % colours.length];

/** Longer axes are read at every n-th element. */
const most = 4000;

/** @param {any} v of JSON @param {boolean} times whether it is a time as text: then in seconds */
function toNumber(v, times) {
  if (typeof v === 'number') return v;
  if (typeof v === 'boolean' || /^-?\d{16,}$/.test(v)) return Number(v);
  if (times) return Number.isNaN(Date.parse(v)) ? null : Date.parse(v + (/T.*(Z|[+-]\d\d:\d\d)$/.test(v) || !v.includes('T') ? '' : 'Z')) / 1000;
  return null; // missing, infinite, or no number
}

/** @param {number} s seconds */
const date = (s) => text.label(new Date(s * 1000).toISOString().slice(0, 19));

/**
 * @param {{ shown: import('./main.js').Shown, info: any, axes: import('./coords.js').Axis[], along: number, points: number[][], raw: boolean, alone?: boolean }} p
 */
export function Series({ shown, info, axes, along, points, raw, alone }) {
  const { db, commit } = shown;
  const axis = axes[along];
  const step = Math.ceil(axis.length / most);
  const { value, error } = useLoad((signal) => Promise.all(points.map((q) => get('read', {
    db, rev: commit, path: info.path, select: q.map((i, d) => (d === along ? `::${step}` : String(i))).join(','), decode: raw ? false : 'cf', times: 'text', format: 'json',
  }, signal))), [db, commit, info.path, along, points.map((q) => q.map((i, d) => (d === along ? '' : i)).join()), raw]);
  const [box, width] = useWidth();
  const chart = useRef(/** @type {HTMLElement | null} */ (null));
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const f = () => setTheme((n) => n + 1);
    addEventListener('themechange', f);
    return () => removeEventListener('themechange', f);
  }, []);
  const name = (/** @type {number[]} */ q) => q.map((i, d) => (d === along ? '' : axes[d].full(i))).filter(Boolean).join(', ') || info.path;
  const n = value ? value[0].data.length : 0;
  const times = !!value && /datetime64/.test(text.dtype(value[0].data_type));
  const shownValue = (/** @type {number} */ v) => (times ? date(v) : text.number(v));
  /** @type {number[]} */
  const xs = [];
  let rising = axis.values !== null;
  for (let i = 0; i < n; i++) {
    xs.push(axis.position(i * step));
    if (i > 0 && !(xs[i] > xs[i - 1])) rising = false;
  }
  const falling = !rising && axis.values !== null && n > 1 && xs.every((x, i) => i === 0 || x < xs[i - 1]);
  if (!rising && !falling) xs.forEach((_, i) => { xs[i] = i * step; });
  const labelled = rising || falling;
  useEffect(() => {
    const el = chart.current;
    if (!el || !value || !width) return;
    const style = getComputedStyle(el);
    const ink = style.getPropertyValue('--ink').trim(), line = style.getPropertyValue('--line').trim();
    const turn = (/** @type {any[]} */ v) => (falling ? [...v].reverse() : v);
    const tick = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif' };
    const plot = new /** @type {any} */ (window).uPlot({
      width, height: Math.max(180, Math.min(320, width * 0.45)),
      scales: { x: { time: labelled && axis.times } },
      tzDate: (/** @type {number} */ ts) => /** @type {any} */ (window).uPlot.tzDate(new Date(ts * 1000), 'Etc/UTC'),
      legend: { show: true, live: true },
      series: [
        { label: axis.name, value: (/** @type {any} */ _, /** @type {number} */ v, /** @type {any} */ __, /** @type {number} */ i) => (v == null ? '–' : axis.label((falling ? n - 1 - i : i) * step)) },
        ...points.map((q, i) => ({ label: name(q), stroke: seriesColour(i), width: 1.6, points: { show: n < 60 }, value: (/** @type {any} */ _, /** @type {number} */ v) => (v == null ? '–' : shownValue(v)) })),
      ],
      axes: [{ ...tick, values: labelled && axis.times ? undefined : (/** @type {any} */ _, /** @type {number[]} */ s) => s.map((v) => (labelled || !axis.values ? text.number(v) : Number.isInteger(v) ? axis.label(v) : '')) },
        { ...tick, size: times ? 90 : 66, ...(times ? { incrs: [1, 5, 30, 60, 300, 1800, 3600, 21_600, 43_200, ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000].map((d) => d * 86_400)] } : {}), values: (/** @type {any} */ _, /** @type {number[]} */ s) => s.map(shownValue) }],
    }, [turn(xs), ...value.map((r) => turn(r.data.map((/** @type {any} */ v) => toNumber(v, times))))], el);
    return () => plot.destroy();
  }, [value, width, theme, labelled, falling]);
  const csv = () => {
    if (!value) return;
    const quote = (/** @type {any} */ s) => { // a spreadsheet must not take a text for a formula
      const t = String(s), safe = /^[=+@\t\r]/.test(t) ? "'" + t : t;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const lines = [[axis.name, ...points.map(name)].map(quote).join(',')];
    for (let i = 0; i < n; i++) lines.push([axis.values ? axis.values[i * step] : i * step, ...value.map((r) => (r.data[i] === 'NaN' ? '' : r.data[i]))].map((v) => (typeof v === 'number' ? String(v) : quote(v))).join(','));
    text.save(`${info.path.replaceAll('/', '_')}_${axis.name}.csv`, new Blob([lines.join('\n') + '\n'], { type: 'text/csv' }));
  };
  return html`<section class="series" aria-label="Series">
    ${alone ? html`<div class="title"><h1>${typeof info.attributes.long_name === 'string' ? info.attributes.long_name : info.path}</h1><span class="dim">${String(info.attributes.units ?? '')}</span></div>` : html`<h2>Along ${axis.name}</h2>`}
    <div class="controls">
      ${!alone && html`<label>Along <select value=${along} onChange=${(/** @type {any} */ e) => go({ along: e.target.value }, true)}>${axes.map((a, d) => html`<option value=${d} selected=${d === along}>${a.name}</option>`)}</select></label>`}
      <button onClick=${csv} disabled=${!value}>Save CSV</button>
      ${!alone && html`<button onClick=${() => go({ pts: '' })}>Remove the points</button>`}
      ${step > 1 && html`<span class="dim small">One of ${step} elements is shown.</span>`}
    </div>
    <div ref=${box}>${error ? html`<${Failure} error=${error} />` : !value ? html`<${Loading} />` : ''}<div ref=${chart} class="chart" /></div>
  </section>`;
}
