// Two versions side by side: which arrays, attributes and chunks differ, and by how much.
import { html, useEffect, useMemo, useState } from './lib/preact-htm.js';
import { get, getOnce } from './api.js';
import { go, link, useLoad } from './state.js';
import * as text from './text.js';
import { mapOf, maps } from './colour.js';
import { axes as readAxes } from './coords.js';
import { Plane, readWindow, useWindow } from './plane.js';
import { Bar, Colours, Slider, fitting, planeOf, useLimits, viewOf, viewText } from './picture.js';
import { Chart } from './series.js';
import { Copy, Failure, Loading } from './parts.js';

/** What differs, as diff --json says. @param {any} c */
function describe(c) {
  const parts = [];
  if (c.from && c.from !== c.path) parts.push(`renamed from ${c.from}`);
  else if (c.kind !== 'changed') parts.push(c.kind);
  if (c.chunks_changed) parts.push(text.count(c.chunks_changed, 'chunk') + ' changed');
  if (c.chunks_added) parts.push(text.count(c.chunks_added, 'chunk') + ' added');
  if (c.chunks_removed) parts.push(text.count(c.chunks_removed, 'chunk') + ' removed');
  return parts.join(', ') || (c.fields ? 'metadata' : c.kind);
}

/** The list of differences. @param {{ shown: import('./main.js').Shown, from: string, to: string, path?: string }} p */
export function Changes({ shown, from, to, path }) {
  const { value, error } = useLoad((signal) => get('diff', { db: shown.db, rev: from, to, path }, signal), [shown.db, from, to, path]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  if (!value.length) return html`<p>No array, group or attribute differs.</p>`;
  return html`<ul class="changes">${value.slice(0, 1000).map((/** @type {any} */ c) => html`<li>
    <a href=${link({ view: 'compare', from, to, path: c.path })}>${c.path || '/'}</a> <span class="dim">${describe(c)}</span>
    ${(c.fields || []).map((/** @type {string} */ f) => html`<div class="field"><code>${f}</code></div>`)}</li>`)}</ul>
    ${value.length > 1000 && html`<p class="dim">and ${value.length - 1000} more</p>`}`;
}

/** @param {{ label: string, value: string, shown: import('./main.js').Shown, set: (s: string) => void }} p */
function Version({ label, value, shown, set }) {
  return html`<label>${label} <input list="revs" size="16" spellcheck=${false} value=${value} placeholder="branch, tag, commit" onChange=${(/** @type {any} */ e) => set(e.target.value.trim())} /></label>`;
}

/** @param {{ shown: import('./main.js').Shown, path: string }} p */
export function Compare({ shown, path }) {
  const { db, state } = shown;
  const to = state.to || shown.rev || 'main';
  const from = state.from || (shown.tags.length && shown.tags[shown.tags.length - 1].name) || `${to}~1`;
  const ends = useLoad((signal) => Promise.all([get('show', { db, rev: from }, signal), get('show', { db, rev: to }, signal)]), [db, from, to]);
  const [a, b] = ends.value || [];
  return html`<div class="title"><h1>Compare</h1></div>
    <div class="controls"><${Version} label="From" value=${from} shown=${shown} set=${(/** @type {string} */ s) => go({ from: s, to })} />
      <${Version} label="to" value=${to} shown=${shown} set=${(/** @type {string} */ s) => go({ from, to: s })} />
      <button onClick=${() => go({ from: to, to: from })} title="Exchange the versions">⇄<span class="hidden"> Exchange the versions</span></button></div>
    ${ends.error ? html`<${Failure} error=${ends.error} />` : !a ? html`<${Loading} />` : html`
      <p class="dim">From <a class="id" href=${link({ view: 'history', commit: a.id })}>${a.id.slice(0, 10)}</a> “${a.message}”, ${text.ago(a.time)},
        to <a class="id" href=${link({ view: 'history', commit: b.id })}>${b.id.slice(0, 10)}</a> “${b.message}”, ${text.ago(b.time)}.</p>
      ${path ? html`<${Pair} shown=${shown} path=${path} a=${a.id} b=${b.id} />` : ''}
      ${path && html`<h2>All that changed</h2>`}<${Changes} shown=${shown} from=${a.id} to=${b.id} />
      <details class="commands"><summary>Command</summary><${Copy} label="Shell" text=${`zarrdb diff ${text.shell(path ? shown.target + ':' + path : shown.target)} ${a.id.slice(0, 10)} ${b.id.slice(0, 10)} --values`} /></details>`}`;
}

/** One node in both versions. @param {{ shown: import('./main.js').Shown, path: string, a: string, b: string }} p */
function Pair({ shown, path, a, b }) {
  const { db } = shown;
  const { value, error } = useLoad(async (signal) => {
    const changes = await get('diff', { db, rev: a, to: b, path }, signal);
    const own = changes.find((/** @type {any} */ c) => c.path === path);
    const was = own && own.from ? own.from : path;
    const info = (/** @type {string} */ rev, /** @type {string} */ p) => getOnce('info', { db, rev, path: p }).catch(() => null);
    const [older, newer] = await Promise.all([info(a, was), info(b, path)]);
    return { own, older, newer };
  }, [db, a, b, path]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const { own, older, newer } = value;
  const array = (/** @type {any} */ i) => i && i.node_type === 'array';
  const both = array(older) && array(newer), rank = both && older.shape.length === newer.shape.length;
  return html`<h2>${path}</h2>
    ${own ? html`<p>${describe(own)}</p>${(own.fields || []).map((/** @type {string} */ f) => html`<div class="field"><code>${f}</code></div>`)}` : html`<p>${older || newer ? 'Nothing differs in this node.' : 'Neither version has this node.'}</p>`}
    ${both && !rank && html`<p>The shape was ${older.shape.join(' × ')} and is ${newer.shape.join(' × ')}: there is no difference of values.</p>`}
    ${rank && html`<${Values} key=${a + b + path} shown=${shown} a=${a} b=${b} older=${older} newer=${newer} own=${own} />`}`;
}

/** What two versions of an array hold. @param {{ shown: import('./main.js').Shown, a: string, b: string, older: any, newer: any, own: any }} p */
function Values(p) {
  const { shown, a, b, older, newer, own } = p, { db } = shown;
  const { value: axes } = useLoad(() => readAxes({ ...shown, commit: b }, newer), [db, b, newer.path]);
  const changed = !!own && !!(own.chunks_changed || own.chunks_added || own.chunks_removed || own.fields);
  const values = useLoad((signal) => (changed ? get('diff', { db, rev: a, to: b, path: newer.path, values: '1' }, signal) : Promise.resolve([])), [db, a, b, newer.path]);
  const mine = useMemo(() => (values.value || []).filter((/** @type {any} */ x) => x.path === newer.path), [values.value]);
  const boxes = useMemo(() => mine.filter((/** @type {any} */ x) => x.start || x.count), [mine]);
  if (values.error) return html`<${Failure} error=${values.error} what="Values cannot be compared" />`;
  if (!axes) return html`<${Loading} />`;
  const other = mine.find((/** @type {any} */ x) => x.incomparable);
  const n = boxes.reduce((/** @type {number} */ t, /** @type {any} */ x) => t + x.count, 0);
  const numbers = boxes.filter((/** @type {any} */ x) => x.numbers > 0), of = numbers.reduce((/** @type {number} */ t, /** @type {any} */ x) => t + x.numbers, 0);
  const lo = Math.min(...numbers.map((/** @type {any} */ x) => x.min)), hi = Math.max(...numbers.map((/** @type {any} */ x) => x.max)), mean = numbers.reduce((/** @type {number} */ t, /** @type {any} */ x) => t + (x.mean * x.numbers) / of, 0);
  const units = String(newer.attributes.units ?? '').split(' since ')[0]; // of stored values
  const short = (/** @type {number} */ v) => text.number(/float(16|32)|f[24]$/.test(text.dtype(newer.data_type)) ? Number(v.toPrecision(7)) : v); // a float32 has no more digits
  const by = !of ? '' : `, by ${lo === hi ? short(lo) : `${short(lo)} to ${short(hi)}`} ${units}`.trimEnd() + (lo === hi ? '' : `, ${Number(mean.toPrecision(6))} on average`);
  const grown = newer.shape.map((/** @type {number} */ m, /** @type {number} */ d) => ({ d, was: older.shape[d], is: m })).filter((/** @type {any} */ g) => g.was !== g.is);
  const part = grown.length ? ' where both versions have elements' : '';
  const empty = newer.shape.includes(0) || older.shape.includes(0);
  const numeric = text.isNumeric(newer) && text.isNumeric(older) && !empty;
  return html`
    <p role="status">${other ? `Values are not compared: the ${other.incomparable} is another.` : n ? `${text.count(n, 'value')} in ${text.count(boxes.length, 'place')} ${n === 1 ? 'differs' : 'differ'}${by}${part}.` : values.value ? `No value differs${part}.` : 'Comparing all values…'}</p>
    ${grown.map((/** @type {any} */ g) => {
      const x = axes.axes[g.d];
      return html`<p>${g.is > g.was ? html`New along ${x.name}: ${text.count(g.is - g.was, 'element')}, ${x.label(g.was)}${g.is - g.was > 1 ? ` to ${x.label(g.is - 1)}` : ''}.` : html`Gone along ${x.name}: ${text.count(g.was - g.is, 'element')}, index ${g.is}${g.was - g.is > 1 ? ` to ${g.was - 1}` : ''}.`}</p>`;
    })}
    ${numeric && newer.shape.length >= 2 ? html`<${Pictures} ...${p} axes=${axes.axes} boxes=${boxes} units=${units} />`
    : numeric && newer.shape.length === 1 ? html`<${Lines} ...${p} />`
    : !empty && (boxes.length > 0 || newer.shape.length === 0) ? html`<${Both} ...${p} axes=${axes.axes} boxes=${boxes} />` : ''}`;
}

/** Arrays of one axis: a line of each version, and their difference. @param {{ shown: import('./main.js').Shown, a: string, b: string, older: any, newer: any, own: any }} p */
function Lines({ shown, a, b, older, newer }) {
  const [range, setRange] = useState(/** @type {number[] | null} */ (null));
  const common = Math.min(older.shape[0], newer.shape[0]), raw = shown.state.raw === '1';
  const cut = (/** @type {number} */ n) => (range ? `${Math.min(range[0], n - 1)}:${Math.min(range[1], n)}` : `0:${n}`);
  const { value, error } = useLoad((signal) => {
    const q = { db: shown.db, rev: b, path: newer.path, decode: raw ? false : /** @type {const} */ ('cf'), from: a, width: 800, xticks: 8, yticks: 6 };
    return Promise.all([get('series', { ...q, was: older.path, select: cut(newer.shape[0]), fromselect: cut(older.shape[0]) }, signal), get('series', { ...q, difference: '1', select: cut(common) }, signal)]);
  }, [shown.db, a, b, newer.path, raw, range]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const pick = { pick: (/** @type {number} */ x, /** @type {number} */ y) => setRange([x, Math.ceil(y)]), all: () => setRange(null) };
  return html`${range && html`<p><button onClick=${() => setRange(null)}>Show the whole axis</button></p>`}
    <${Chart} value=${value[0]} names=${['To', 'From']} ...${pick} /><h3>Difference: to − from</h3><${Chart} value=${value[1]} names=${['Difference']} ...${pick} />`;
}

/** Elements that differ, as texts: the first ones. @param {{ shown: import('./main.js').Shown, a: string, b: string, older: any, newer: any, axes: any[], boxes: any[] }} p */
function Both({ shown, a, b, older, newer, axes, boxes }) {
  const most = 200;
  const places = useMemo(() => {
    /** @type {number[][]} */
    const out = [];
    for (const x of boxes) {
      const start = x.start || [], shape = x.shape || [], n = shape.reduce((/** @type {number} */ t, /** @type {number} */ m) => t * m, 1);
      for (let i = 0; i < n && out.length < most; i++) {
        let rest = i;
        const at = new Array(shape.length);
        for (let d = shape.length - 1; d >= 0; rest = Math.floor(rest / shape[d--])) at[d] = start[d] + (rest % shape[d]);
        out.push(at);
      }
    }
    return out.length || newer.shape.length ? out : [[]];
  }, [boxes]);
  const { value, error } = useLoad((signal) => Promise.all(places.map(async (at) => {
    const one = (/** @type {string} */ rev, /** @type {string} */ path) => get('point', { db: shown.db, rev, path, select: at.join(','), decode: 'cf' }, signal);
    const [was, is] = await Promise.all([one(a, older.path), one(b, newer.path)]);
    return { at, was: was.value, is: is.value };
  })), [shown.db, a, b, newer.path, places]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const rows = value.filter((r) => r.was !== r.is || !r.at.length);
  return html`<table class="members"><thead><tr>${axes.map((x) => html`<th scope="col">${x.name}</th>`)}<th scope="col">From</th><th scope="col">To</th></tr></thead><tbody>
    ${rows.map((r) => html`<tr>${r.at.map((i, d) => html`<td>${axes[d].label(i)}</td>`)}<td>${r.was}</td><td>${r.is}</td></tr>`)}</tbody></table>`;
}

/** @param {any} box @param {any} plane whether a box of elements is in the plane */
const inPlane = (box, plane) => box.start.every((/** @type {number} */ s, /** @type {number} */ d) => d === plane.y || d === plane.x || (s <= plane.at[d] && plane.at[d] < s + box.shape[d]));

/** @param {{ shown: import('./main.js').Shown, a: string, b: string, older: any, newer: any, axes: import('./coords.js').Axis[], boxes: any[], units: string }} p */
function Pictures({ shown, a, b, older, newer, axes, boxes, units }) {
  const { db, state } = shown;
  const { value: all } = useLoad(maps, []);
  const plane = planeOf(newer, state);
  useEffect(() => { // begin where something differs
    if (!state.at && boxes.length && !boxes.some((/** @type {any} */ x) => inPlane(x, plane))) go({ at: boxes[0].start.map((/** @type {number} */ s, /** @type {number} */ d) => (d === plane.y || d === plane.x ? 0 : s)).join(',') }, true);
  }, [boxes]);
  const rows = newer.shape[plane.y], cols = newer.shape[plane.x];
  const view = viewOf(state.win, rows, cols);
  const [size, setSize] = useState([0, 0]);
  const [split, setSplit] = useState(50);
  const up = axes[plane.y].up !== (state.flip === '1');
  const [pointer, setPointer] = useState(/** @type {any} */ (null));
  const of = JSON.stringify([db, b, newer.path, plane.raw]);
  const { limits, learn } = useLimits(state, of + state.log);
  const others = plane.at.filter((/** @type {number} */ _, /** @type {number} */ d) => d !== plane.y && d !== plane.x);
  const key = JSON.stringify([of, a, plane.y, plane.x, others, state.lo, state.hi]);
  const older0 = older.shape[plane.y], older1 = older.shape[plane.x];
  const had = plane.at.every((/** @type {number} */ i, /** @type {number} */ d) => d === plane.y || d === plane.x || i < older.shape[d]);
  const axesKey = JSON.stringify([of, a, plane.y, plane.x]);
  const two = fitting(useWindow(async (v, o, signal) => { // all in one, so that they are always of one view
    const window = (/** @type {string} */ rev, /** @type {any} */ i, /** @type {any} */ view, /** @type {any} */ more) => readWindow(shown, rev, i.path, plane, view, { ...o, ...more }, signal);
    const common = { y0: v.y0, y1: Math.min(v.y1, older0), x0: v.x0, x1: Math.min(v.x1, older1) };
    const some = had && common.y0 < common.y1 && common.x0 < common.x1;
    const y = limits.lo === undefined || limits.hi === undefined ? await window(b, newer, v, { limits }) : null;
    const l = y ? y.limits : limits;
    const [x, z, d] = await Promise.all([some ? window(a, older, common, { limits: l }) : null, y || window(b, newer, v, { limits: l }), some ? window(b, newer, common, { from: a, limits: undefined }) : null]);
    learn(z);
    return /** @type {any} */ ({ ...z, full: z.full && (!x || x.full) && (!d || d.full), older: x, diff: d, index: plane.at, axesKey });
  }, key, view, size[0], size[1]), axesKey);
  const pick = (/** @type {'older' | 'newer' | 'diff' | 'swipe'} */ which) => {
    const of = (/** @type {any} */ w) => {
      if (!w || which === 'newer') return w;
      if (which === 'older') return w.older && { ...w.older, ticks: w.ticks };
      if (which === 'diff') return w.diff && { ...w.diff, ticks: w.ticks };
      if (!w.older || w.older.shades.length !== w.shades.length) return w; // of another size, or other chunks, of which fewer are read at first
      const at = Math.round((w.x.len * split) / 100);
      return { ...w, shades: w.shades.map((/** @type {number} */ n, /** @type {number} */ i) => (i % w.x.len < at ? w.older.shades[i] : n)) };
    };
    return { win: of(two.win), base: of(two.base), busy: two.busy };
  };
  const parts = useMemo(() => ({ older: pick('older'), newer: pick('newer'), diff: pick('diff'), swipe: pick('swipe') }), [two, split]);
  const where = pointer && plane.at.map((/** @type {number} */ i, /** @type {number} */ d) => (d === plane.y ? pointer.y : d === plane.x ? pointer.x : i));
  const inOlder = where && where.every((/** @type {number} */ i, /** @type {number} */ d) => i < older.shape[d]);
  const under = useLoad(async (signal) => {
    if (!where) return null;
    await new Promise((done) => setTimeout(done, 60));
    if (signal.aborted) return null;
    const q = { db, select: where.join(','), decode: plane.raw ? false : /** @type {const} */ ('cf') };
    const [was, is, by] = await Promise.all([inOlder ? get('point', { ...q, rev: a, path: older.path }, signal) : null, get('point', { ...q, rev: b, path: newer.path }, signal),
      inOlder ? get('series', { ...q, rev: b, path: newer.path, from: a, difference: '1' }, signal) : null]);
    const line = by && by.lines[0][0];
    return { older: was ? was.value : '', newer: is.value, swipe: was && was.value !== is.value ? `${was.value} | ${is.value}` : is.value,
      diff: !was ? 'new' : line === null ? (was.value === is.value ? '' : was.value === 'missing' ? 'was missing' : 'is missing') : by.texts ? by.texts[0][0] : text.number(line) };
  }, [db, a, b, newer.path, plane.raw, where]).value;
  if (!all) return html`<${Loading} />`;
  const map = mapOf(all, state.map), diverging = all.find((m) => m.diverging) || all[0];
  const swipe = state.mode === 'swipe';
  const win = /** @type {any} */ (two.win), d = parts.diff.win, each = d ? d.y.skip * d.x.skip : 1;
  const inSight = boxes.filter((/** @type {any} */ x) => inPlane(x, plane)).slice(0, 2000).map((/** @type {any} */ x) => ({ y: x.start[plane.y], x: x.start[plane.x], height: x.shape[plane.y], width: x.shape[plane.x] }));
  const shownUnits = win && win.times ? '' : String(newer.attributes.units ?? '');
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : v)).join(',') }, true);
  const one = (/** @type {string} */ name, /** @type {'older' | 'newer' | 'diff' | 'swipe'} */ which, /** @type {any} */ m) => html`<figure><figcaption>${name}${under && html` <strong>${under[which]}</strong>`}</figcaption>
    <${Plane} shown=${parts[which]} map=${m} yAxis=${axes[plane.y]} xAxis=${axes[plane.x]} up=${up} view=${view} boxes=${inSight} most=${0.42} name=${`${name}, ${newer.path}`}
      setView=${(/** @type {any} */ v) => go({ win: viewText(v, rows, cols) }, true)} onSize=${(/** @type {number} */ w, /** @type {number} */ h) => (which === 'newer' || which === 'swipe') && setSize((s) => (s[0] === w && s[1] === h ? s : [w, h]))} onPoint=${setPointer} /></figure>`;
  return html`
    ${boxes.length > 0 && html`<p>${text.count(inSight.length, 'place')} in this picture ${inSight.length === 1 ? 'is' : 'are'} outlined.</p>`}
    ${!had && html`<p>The older version has nothing here: all of it is new.</p>`}
    ${axes.map((x, d) => d !== plane.y && d !== plane.x && html`<${Slider} key=${d} axis=${x} at=${plane.at[d]} set=${set(d)} drawn=${win?.index[d]} label=${win?.at?.[d]} />`)}
    <div class="controls"><label><input type="radio" name="mode" checked=${!swipe} onChange=${() => go({ mode: '' }, true)} /> side by side</label>
      <label><input type="radio" name="mode" checked=${swipe} onChange=${() => go({ mode: 'swipe' }, true)} /> swipe</label>
      ${swipe && html`<label>from | to <input type="range" min="0" max="100" value=${split} onInput=${(/** @type {any} */ e) => setSplit(Number(e.target.value))} /></label>`}</div>
    ${two.error && html`<${Failure} error=${two.error} />`}
    <div class=${swipe ? 'three swipe' : 'three'}>
      ${swipe ? one('From | to', 'swipe', map) : html`${one('From', 'older', map)}${one('To', 'newer', map)}`}
      ${one('Difference: to − from' + (each > 1 ? `, the largest of each ${d?.y.skip} × ${d?.x.skip}` : ''), 'diff', diverging)}
    </div>
    <div class="bars"><div><${Bar} map=${map} win=${win} units=${shownUnits} /><${Colours} all=${all} state=${state} win=${win} /></div>
      <${Bar} map=${diverging} win=${d} units=${`difference${win && win.times ? '' : ` in ${units || 'values'}`}`} /></div>`;
}
