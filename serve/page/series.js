// Values along an axis as lines, for several points. The server says where they lie.
import { html, useEffect, useRef, useState } from './lib/preact-htm.js';
import { get, getBytes } from './api.js';
import { go, useLoad } from './state.js';
import * as text from './text.js';
import { Failure, Loading, useWidth } from './parts.js';

/** Colours of lines with contrast on light and dark, also to eyes that see few of them. */
const colours = ['#c2410c', '#2470c4', '#15803d', '#a21caf', '#8a6d00', '#0e7490', '#be123c', '#6d5bd0'];

/** @param {number} i */
export const seriesColour = (i) => colours[i % colours.length];

/**
 * A chart of lines, as the server describes them.
 * @param {{ value: any, names: string[], pick?: (from: number, to: number) => void, all?: () => void }} p
 */
export function Chart({ value, names, pick, all }) {
  const [box, width] = useWidth();
  const chart = useRef(/** @type {HTMLElement | null} */ (null));
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const f = () => setTheme((n) => n + 1);
    addEventListener('themechange', f);
    return () => removeEventListener('themechange', f);
  }, []);
  useEffect(() => {
    const el = chart.current;
    if (!el || !value || !width) return;
    const style = getComputedStyle(el);
    const ink = style.getPropertyValue('--ink').trim(), line = style.getPropertyValue('--line').trim();
    // The chart draws between 0 and 1: it has no digits for values that are near each other, or far from 0.
    const part = (/** @type {number} */ lo, /** @type {number} */ hi) => (/** @type {number} */ v) => (lo === hi ? 0.5 : Number.isFinite(hi - lo) ? (v - lo) / (hi - lo) : v / 2 / (hi / 2 - lo / 2) - lo / 2 / (hi / 2 - lo / 2));
    const x = part(value.x[0], value.x[value.x.length - 1]), y = part(value.limits.lo, value.limits.hi);
    const axis = (/** @type {any[]} */ ticks, /** @type {(v: number) => number} */ f) => ({
      stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif',
      splits: () => ticks.map((t) => f(t.at)), values: () => ticks.map((t) => t.text),
    });
    const g = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    g.font = '12px system-ui, sans-serif';
    const wide = (/** @type {any} */ t) => g.measureText(t.text).width;
    const size = Math.max(50, ...value.yticks.map((/** @type {any} */ t) => wide(t) + 20)), room = width - size - 24;
    let free = -Infinity;
    const shown = value.xticks.filter((/** @type {any} */ t) => { // labels do not overlap, and none is cut
      const at = x(t.at) * room, half = wide(t) / 2;
      if (at - half < free || at + half > room + 22 || at - half < -size) return false;
      free = at + half + 10;
      return true;
    });
    const say = (/** @type {number} */ k) => (/** @type {any} */ _, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number | null} */ i) => (i == null ? '–' : value.lines[k][i] === null ? 'missing' : value.lines[k][i] === '' ? '–' : value.texts ? value.texts[k][i] : text.number(value.lines[k][i]));
    const plot = new /** @type {any} */ (window).uPlot({
      width, height: Math.max(180, Math.min(320, width * 0.45)), padding: [12, 24, 0, 0],
      scales: { x: { time: false, range: [0, 1] }, y: { range: [-0.04, 1.04] } },
      legend: { show: true, live: true },
      cursor: { drag: { x: true, y: false, setScale: false } },
      hooks: { setSelect: [(/** @type {any} */ u) => {
        if (!pick || u.select.width < 2) return;
        const at = (/** @type {number} */ px) => value.index[u.valToIdx(u.posToVal(px, 'x'))];
        const a = at(u.select.left), b = at(u.select.left + u.select.width);
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        pick(Math.min(a, b), Math.max(a, b) + Math.max(1, value.run / 2));
      }] },
      series: [
        { label: value.title, value: (/** @type {any} */ _, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number | null} */ i) => (i == null ? '–' : value.labels[i]) },
        ...names.map((name, k) => ({ label: name, stroke: seriesColour(k), width: 1.6, points: { show: value.x.length < 60 }, value: say(k) })),
      ],
      axes: [axis(shown, x), { ...axis(value.yticks, y), size }],
    }, [value.x.map(x), ...value.lines.map((/** @type {any[]} */ l) => l.map((v) => (v === '' ? undefined : v === null ? null : y(v))))], el);
    if (all) plot.over.addEventListener('dblclick', all);
    return () => plot.destroy();
  }, [value, width, theme, names.join()]);
  return html`<div ref=${box}><div ref=${chart} class="chart" /></div>
    ${value && value.x.length <= 2000 && html`<details class="small"><summary>As a table</summary><table class="members"><thead><tr><th scope="col">${value.title}</th>${names.map((n) => html`<th scope="col">${n}</th>`)}</tr></thead>
      <tbody>${value.labels.slice(0, 200).map((/** @type {string} */ l, /** @type {number} */ i) => html`<tr><th scope="row">${l}</th>${names.map((_, k) => html`<td>${value.texts ? value.texts[k][i] : value.lines[k][i] === '' ? '' : text.number(value.lines[k][i])}</td>`)}</tr>`)}</tbody></table>
      ${value.labels.length > 200 && html`<p class="dim">and ${value.labels.length - 200} more</p>`}</details>`}`;
}

/**
 * @param {{ shown: import('./main.js').Shown, info: any, axes: import('./coords.js').Axis[], parts: string[], along: number, points: number[][], raw: boolean, alone?: boolean }} p
 */
export function Series({ shown, info, axes, parts, along, points, raw, alone }) {
  const { db, commit, state } = shown;
  const axis = axes[along];
  const [range, setRange] = useState(/** @type {number[] | null} */ (null));
  const part = parts.includes(state.part) ? state.part : parts[0] || '';
  const [wide] = useState(() => Math.max(200, Math.min(1600, innerWidth - 300)));
  useEffect(() => setRange(null), [along, info.path]);
  const selects = (/** @type {number[] | null} */ r) => points.map((q) => q.map((i, d) => (d === along ? (r ? r.join(':') : ':') : String(i))).join(','));
  const params = { db, rev: commit, path: info.path, decode: raw ? false : 'cf', part: part || false };
  const { value, error } = useLoad((signal) => get('series', { ...params, select: selects(range), width: wide, xticks: Math.floor(wide / 90), yticks: 6 }, signal), [db, commit, info.path, along, selects(range), raw, part, wide]);
  const name = (/** @type {number[]} */ q) => q.map((i, d) => (d === along ? '' : axes[d].full(i))).filter(Boolean).join(', ') || info.path;
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const csv = () => saved().then(() => setFailed(null), setFailed);
  const saved = async () => {
    const { bytes } = await getBytes('series', { ...params, select: selects(range), name: points.map(name), format: 'csv' });
    text.save(`${info.path.replaceAll('/', '_')}_${axis.name}.csv`, new Blob([bytes], { type: 'text/csv' }));
  };
  return html`<section class="series" aria-label="Series">
    ${alone ? html`<div class="title"><h1>${typeof info.attributes.long_name === 'string' ? info.attributes.long_name : info.path}</h1><span class="dim">${String(info.attributes.units ?? '')}</span></div>` : html`<h2>Along ${axis.name}</h2>`}
    <div class="controls">
      ${!alone && html`<label>Along <select value=${along} onChange=${(/** @type {any} */ e) => go({ along: e.target.value }, true)}>${axes.map((a, d) => html`<option value=${d} selected=${d === along}>${a.name}</option>`)}</select></label>`}
      ${parts.length > 0 && html`<label>Part <select value=${part} onChange=${(/** @type {any} */ e) => go({ part: e.target.value }, true)}>${parts.map((s) => html`<option value=${s} selected=${s === part}>${s}</option>`)}</select></label>`}
      <button onClick=${csv} disabled=${!value}>Save CSV</button>
      ${range && html`<button onClick=${() => setRange(null)}>Show the whole axis</button>`}
      ${!alone && html`<button onClick=${() => go({ pts: '' })}>Remove the points</button>`}
      ${value && value.run > 1 && html`<span class="dim small">The least and the greatest of each ${value.run} elements are drawn; drag over a part to see all of it.</span>`}
      ${value && value.every > 1 && html`<span class="dim small">One of ${value.every} elements is read; drag over a part to see all of it.</span>`}
    </div>
    ${failed && html`<${Failure} error=${failed} what="The table is not saved" />`}
    ${error ? html`<${Failure} error=${error} />` : !value ? html`<${Loading} />` : html`<${Chart} value=${value} names=${points.map(name)} pick=${(/** @type {number} */ a, /** @type {number} */ b) => setRange([a, Math.min(axis.length, Math.ceil(b))])} all=${() => setRange(null)} />`}
  </section>`;
}
