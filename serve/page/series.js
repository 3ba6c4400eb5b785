// Values along an axis as lines, for several points. The server says where they lie.
import { html, useEffect, useRef, useState } from './lib/preact-htm.js';
import { get, getBytes, getOnce } from './api.js';
import { go, useLoad } from './state.js';
import * as text from './text.js';
import { axisNames } from './info.js';
import { Failure, Loading, useWidth } from './parts.js';

/** Colours of lines with contrast on light and dark, also to eyes that see few of them. */
const colours = ['#c2410c', '#2470c4', '#15803d', '#a21caf', '#8a6d00', '#0e7490', '#be123c', '#6d5bd0'];

/** @param {string} s a name in the address, which a person may have typed */
function plain(s) {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

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
    const x = part(value.x[0], value.x[value.x.length - 1]), y = part(value.limits.lo, value.limits.hi), right = value.right, onRight = (/** @type {number} */ k) => !!value.onright?.[k];
    const z = right ? part(right.limits.lo, right.limits.hi) : y;
    const axis = (/** @type {any[]} */ ticks, /** @type {(v: number) => number} */ f) => ({
      stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif',
      splits: () => ticks.map((t) => f(t.at)), values: () => ticks.map((t) => t.text),
    });
    const g = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    g.font = '12px system-ui, sans-serif';
    const wide = (/** @type {any} */ t) => g.measureText(t.text).width;
    const sizeOf = (/** @type {any[]} */ ticks) => Math.max(50, ...ticks.map((t) => wide(t) + 20)), beside = right ? sizeOf(right.yticks) + 26 : 0; // with the name of the units
    const size = sizeOf(value.yticks) + (right ? 26 : 0), room = width - size - (right ? beside : 24);
    let free = -Infinity;
    const shown = value.xticks.filter((/** @type {any} */ t) => { // labels do not overlap, and none is cut
      const at = x(t.at) * room, half = wide(t) / 2;
      if (at - half < free || at + half > room + 22 || at - half < -size) return false;
      free = at + half + 10;
      return true;
    });
    const say = (/** @type {number} */ k) => (/** @type {any} */ _, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number | null} */ i) => (i == null ? '–' : value.lines[k][i] === null ? 'missing' : value.lines[k][i] === '' ? '–' : value.texts?.[k] ? value.texts[k][i] : text.number(value.lines[k][i]));
    const named = (/** @type {string} */ units) => (right ? { label: units || 'without units', labelSize: 22, labelFont: '12px system-ui, sans-serif' } : {});
    const plot = new /** @type {any} */ (window).uPlot({
      width, height: Math.max(180, Math.min(320, width * 0.45)), padding: [12, right ? 0 : 24, 0, 0],
      scales: { x: { time: false, range: [0, 1] }, y: { range: [-0.04, 1.04] }, right: { range: [-0.04, 1.04] } },
      legend: { show: true, live: true },
      cursor: { drag: { x: true, y: false, setScale: false }, dataIdx: (/** @type {any} */ u, /** @type {number} */ k, /** @type {number} */ i) => { // each line has a point under the pointer, also between its values
        for (let by = 0; k && by < 64; by++) for (const at of [i - by, i + by]) if (u.data[k][at] !== undefined) return at;
        return i;
      } },
      hooks: { setSelect: [(/** @type {any} */ u) => {
        if (!pick || u.select.width < 2) return;
        const at = (/** @type {number} */ px) => value.index[u.valToIdx(u.posToVal(px, 'x'))];
        const a = at(u.select.left), b = at(u.select.left + u.select.width);
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        pick(Math.min(a, b), Math.max(a, b) + Math.max(1, value.run / 2));
      }] },
      series: [
        { label: value.title, value: (/** @type {any} */ _, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number | null} */ i) => (i == null ? '–' : value.labels[i]) },
        ...names.map((name, k) => ({ label: right ? `${name} (${(onRight(k) ? right.units : value.units) || 'no units'}, ${onRight(k) ? 'right' : 'left'})` : name, scale: onRight(k) ? 'right' : 'y', stroke: seriesColour(k), width: 1.6, points: { show: value.x.length < 60 }, value: say(k) })),
      ],
      axes: [axis(shown, x), { ...axis(value.yticks, y), ...named(value.units), size: size - (right ? 22 : 0) }, ...(right ? [{ ...axis(right.yticks, z), ...named(right.units), grid: { show: false }, scale: 'right', side: 1, size: beside - 22 }] : [])],
    }, [value.x.map(x), ...value.lines.map((/** @type {any[]} */ l, /** @type {number} */ k) => l.map((v) => (v === '' ? undefined : v === null ? null : onRight(k) ? z(v) : y(v))))], el);
    if (all) plot.over.addEventListener('dblclick', all);
    return () => plot.destroy();
  }, [value, width, theme, names.join()]);
  return html`<div ref=${box}><div ref=${chart} class="chart" /></div>
    ${value && value.x.length <= 2000 && html`<details class="small"><summary>As a table</summary><table class="members"><thead><tr><th scope="col">${value.title}</th>${names.map((n) => html`<th scope="col">${n}</th>`)}</tr></thead>
      <tbody>${value.labels.slice(0, 200).map((/** @type {string} */ l, /** @type {number} */ i) => html`<tr><th scope="row">${l}</th>${names.map((_, k) => html`<td>${value.texts?.[k] ? value.texts[k][i] : value.lines[k][i] === '' ? '' : text.number(value.lines[k][i])}</td>`)}</tr>`)}</tbody></table>
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
  const above = info.path.split('/').slice(0, -1).join('/'), leaf = (/** @type {string} */ p) => p.split('/').pop() || '';
  const { value: members } = useLoad(() => getOnce('ls', { db, rev: commit, path: above }).catch(() => []), [db, commit, above]);
  const like = (members || []).filter((/** @type {any} */ m) => m.path !== info.path && !m.error && m.node_type === 'array' && text.isNumeric(m) && String(m.shape) === String(info.shape) && String(axisNames(m)) === String(axisNames(info)) && !axisNames(info).some((n) => /^axis \d+$/.test(n))); // of the same axes, by their names
  const wanted = (state.vars || '').split(',').filter(Boolean).map(plain).slice(0, 7), vars = like.filter((/** @type {any} */ m) => wanted.includes(leaf(m.path))).map((/** @type {any} */ m) => m.path);
  const choose = (/** @type {string[]} */ names) => go({ vars: names.map(encodeURIComponent).join() }, true);
  const params = { db, rev: commit, path: info.path, decode: raw ? false : 'cf', part: part || false, with: vars };
  const { value, error } = useLoad((signal) => get('series', { ...params, select: selects(range), width: wide, xticks: Math.floor(wide / 90), yticks: 6 }, signal), [db, commit, info.path, along, selects(range), raw, part, wide, vars]);
  const place = (/** @type {number[]} */ q) => q.map((i, d) => (d === along ? '' : axes[d].full(i))).filter(Boolean).join(', ');
  const names = vars.length ? [info.path, ...vars].flatMap((p) => points.map((q) => [leaf(p), place(q)].filter(Boolean).join(', '))) : points.map((q) => place(q) || info.path);
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const csv = () => saved().then(() => setFailed(null), setFailed);
  const saved = async () => {
    const { bytes } = await getBytes('series', { ...params, select: selects(range), name: names, format: 'csv' });
    text.save(`${info.path.replaceAll('/', '_')}_${axis.name}.csv`, new Blob([bytes], { type: 'text/csv' }));
  };
  return html`<section class="series" aria-label="Series">
    ${alone ? html`<div class="title"><h1>${typeof info.attributes.long_name === 'string' ? info.attributes.long_name : info.path}</h1><span class="dim">${String(info.attributes.units ?? '')}</span></div>` : html`<h2>Along ${axis.name}</h2>`}
    <div class="controls">
      ${!alone && html`<label>Along <select value=${along} onChange=${(/** @type {any} */ e) => go({ along: e.target.value }, true)}>${axes.map((a, d) => html`<option value=${d} selected=${d === along}>${a.name}</option>`)}</select></label>`}
      ${parts.length > 0 && html`<label>Part <select value=${part} onChange=${(/** @type {any} */ e) => go({ part: e.target.value }, true)}>${parts.map((s) => html`<option value=${s} selected=${s === part}>${s}</option>`)}</select></label>`}
      ${like.length > 0 && html`<label>Together with <select value="" onChange=${(/** @type {any} */ e) => e.target.value && choose([...wanted, e.target.value])}><option value="">add…</option>
        ${like.filter((/** @type {any} */ m) => !vars.includes(m.path)).map((/** @type {any} */ m) => html`<option value=${leaf(m.path)}>${leaf(m.path)}${m.attributes?.units ? `, ${m.attributes.units}` : ''}</option>`)}</select></label>`}
      ${vars.map((/** @type {string} */ p) => html`<label><input type="checkbox" checked onChange=${() => choose(wanted.filter((n) => n !== leaf(p)))} /> ${leaf(p)}</label>`)}
      ${vars.length > 0 && value && html`<span class="dim small">${value.right ? `Two axes: ${value.units || 'without units'} on the left, ${value.right.units || 'without units'} on the right.` : `One axis: all lines ${value.units ? 'are in ' + value.units : 'have no units'}.`}</span>`}
      <button onClick=${csv} disabled=${!value}>Save CSV</button>
      ${range && html`<button onClick=${() => setRange(null)}>Show the whole axis</button>`}
      ${!alone && html`<button onClick=${() => go({ pts: '' })}>Remove the points</button>`}
      ${value && value.run > 1 && html`<span class="dim small">The least and the greatest of each ${value.run} elements are drawn; drag over a part to see all of it.</span>`}
      ${value && value.every > 1 && html`<span class="dim small">One of ${value.every} elements is read; drag over a part to see all of it.</span>`}
    </div>
    ${failed && html`<${Failure} error=${failed} what="The table is not saved" />`}
    ${error ? html`<${Failure} error=${error} />` : !value ? html`<${Loading} />` : html`<${Chart} value=${value} names=${names} pick=${(/** @type {number} */ a, /** @type {number} */ b) => setRange([a, Math.min(axis.length, Math.ceil(b))])} all=${() => setRange(null)} />`}
  </section>`;
}
