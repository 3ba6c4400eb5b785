// Two versions side by side: which arrays, attributes and chunks differ, and by how much.
import { html, useEffect, useMemo, useState } from './lib/preact-htm.js';
import { get, getOnce } from './api.js';
import { go, link, useLoad } from './state.js';
import * as text from './text.js';
import { maps, percentiles, symmetric } from './colour.js';
import { axes as readAxes } from './coords.js';
import { Plane, isUp, readWindow, useWindow, valueAt } from './plane.js';
import { Bar, Colours, Slider, isNumeric, limitsOf, planeOf, useTexts, viewOf, viewText } from './picture.js';
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
      <details class="commands"><summary>Command</summary><${Copy} label="Shell" text=${`zarrdb diff ${text.shell(path ? db + ':' + path : db)} ${a.id.slice(0, 10)} ${b.id.slice(0, 10)} --values`} /></details>`}`;
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
  const both = array(older) && array(newer);
  const same = both && JSON.stringify(older.shape) === JSON.stringify(newer.shape);
  return html`<h2>${path}</h2>
    ${own ? html`<p>${describe(own)}</p>${(own.fields || []).map((/** @type {string} */ f) => html`<div class="field"><code>${f}</code></div>`)}` : html`<p>${older || newer ? 'Nothing differs in this node.' : 'Neither version has this node.'}</p>`}
    ${both && !same && html`<p>The shape was ${older.shape.join(' × ')} and is ${newer.shape.join(' × ')}: there is no difference of values.</p>`}
    ${same && isNumeric(newer) && newer.shape.length >= 2 && !newer.shape.includes(0) && html`<${Pictures} key=${a + b + path} shown=${shown} a=${a} b=${b} older=${older} newer=${newer} own=${own} />`}`;
}

/** A difference of values, without bound where one of them is missing. @param {number | undefined} v */
const sayDifference = (v) => (v === undefined ? '' : Math.abs(v) === Infinity ? (v > 0 ? '+∞' : '−∞') : text.number(v));

/** @param {any} box @param {any} plane whether a box of elements is in the plane */
const inPlane = (box, plane) => box.start.every((/** @type {number} */ s, /** @type {number} */ d) => d === plane.y || d === plane.x || (s <= plane.at[d] && plane.at[d] < s + box.shape[d]));

/** @param {{ shown: import('./main.js').Shown, a: string, b: string, older: any, newer: any, own: any }} p */
function Pictures({ shown, a, b, older, newer, own }) {
  const { db, state } = shown;
  const { value: all } = useLoad(maps, []);
  const { value: axes } = useLoad(() => readAxes({ ...shown, commit: b }, newer), [db, b, newer.path]);
  const changed = !!own && !!(own.chunks_changed || own.chunks_added || own.chunks_removed);
  const values = useLoad((signal) => (changed ? get('diff', { db, rev: a, to: b, path: newer.path, values: '1' }, signal) : Promise.resolve([])), [db, a, b, newer.path]);
  const boxes = useMemo(() => (values.value || []).filter((/** @type {any} */ x) => x.start && x.path === newer.path), [values.value]);
  const plane = planeOf(newer, state);
  useEffect(() => { // begin where something differs
    if (!state.at && boxes.length && !boxes.some((/** @type {any} */ x) => inPlane(x, plane))) go({ at: boxes[0].start.map((/** @type {number} */ s, /** @type {number} */ d) => (d === plane.y || d === plane.x ? 0 : s)).join(',') }, true);
  }, [boxes]);
  const rows = newer.shape[plane.y], cols = newer.shape[plane.x];
  const view = viewOf(state.win, rows, cols);
  const [size, setSize] = useState([0, 0]);
  const [split, setSplit] = useState(50);
  const up = !!useLoad((signal) => isUp(shown, b, newer.path, plane, signal), [db, b, newer.path, plane.y, plane.x]).value;
  const [pointer, setPointer] = useState(/** @type {any} */ (null));
  const key = JSON.stringify([db, a, b, newer.path, plane.y, plane.x, plane.at.filter((/** @type {number} */ _, /** @type {number} */ d) => d !== plane.y && d !== plane.x)]);
  const width = size[0], height = size[1];
  const two = useWindow(async (v, o, signal) => { // all in one, so that they are always of one view
    const window = (/** @type {string} */ rev, /** @type {any} */ i, /** @type {string} */ from) => readWindow(shown, rev, i.path, plane, v, { ...o, from }, signal);
    const [x, y, d] = await Promise.all([window(a, older, ''), window(b, newer, ''), window(b, newer, a)]);
    return /** @type {any} */ ({ ...y, full: x.full && y.full && d.full, older: x, diff: d });
  }, key, view, width, height);
  const pick = (/** @type {'older' | 'newer' | 'diff' | 'swipe'} */ which) => {
    const of = (/** @type {any} */ w) => {
      if (!w || which === 'newer') return w;
      if (which === 'older') return w.older;
      if (which === 'diff') return w.diff;
      if (w.older.values.length !== w.values.length) return w; // other chunks, of which fewer are read at first
      const at = Math.round((w.x.len * split) / 100);
      return { ...w, values: Float64Array.from(w.values, (n, i) => (i % w.x.len < at ? w.older.values[i] : n)) };
    };
    return { win: of(two.win), base: of(two.base), busy: two.busy };
  };
  const parts = useMemo(() => ({ older: pick('older'), newer: pick('newer'), diff: pick('diff'), swipe: pick('swipe') }), [two, split]);
  const auto = useMemo(() => two.base && percentiles(two.base.values, 2, 98), [two.base]);
  const most = useMemo(() => two.win && symmetric(percentiles(/** @type {any} */ (two.win).diff.values, 0, 100, true)), [two.win]);
  const limits = limitsOf(state, auto || { lo: 0, hi: 1 }) || { lo: 0, hi: 1 };
  const read = (/** @type {any} */ w) => (pointer ? valueAt(w, pointer.y, pointer.x) : undefined);
  const win = /** @type {any} */ (two.win), times = !!win && win.times;
  const [low, high, value] = useTexts(shown, b, newer.path, plane.raw, win, [limits.lo, limits.hi, read(win)]);
  const [was] = useTexts(shown, a, older.path, plane.raw, win && win.older, [read(win && win.older)]);
  if (!axes || !all) return html`<${Loading} />`;
  const map = all.find((m) => m.name === state.map) || all[0], diverging = all.find((m) => m.diverging) || all[0];
  const swipe = state.mode === 'swipe';
  const d = parts.diff.win, each = d ? d.y.skip * d.x.skip : 1;
  const inSight = boxes.filter((/** @type {any} */ x) => inPlane(x, plane)).slice(0, 2000).map((/** @type {any} */ x) => ({ y: x.start[plane.y], x: x.start[plane.x], height: x.shape[plane.y], width: x.shape[plane.x] }));
  const total = boxes.reduce((/** @type {any} */ t, /** @type {any} */ x) => ({ n: t.n + x.count, min: Math.min(t.min, x.min ?? t.min), max: Math.max(t.max, x.max ?? t.max) }), { n: 0, min: Infinity, max: -Infinity });
  const attribute = String(newer.attributes.units ?? ''), units = times ? '' : attribute;
  const countUnits = attribute.split(' since ')[0]; // of stored values
  const span = times ? win.type.replace(/^.*\[|\]$/g, '') : units || 'values'; // of the difference
  const under = { older: was, newer: value, diff: sayDifference(read(win && win.diff)), swipe: was === value ? value : `${was} | ${value}` };
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : v)).join(',') }, true);
  const one = (/** @type {string} */ name, /** @type {'older' | 'newer' | 'diff' | 'swipe'} */ which, /** @type {any} */ m, /** @type {any} */ l) => html`<figure><figcaption>${name}${pointer && html` <strong>${under[which]}</strong>`}</figcaption>
    <${Plane} shown=${parts[which]} map=${m} limits=${l} yAxis=${axes[plane.y]} xAxis=${axes[plane.x]} up=${up} view=${view} boxes=${inSight} most=${0.42} name=${`${name}, ${newer.path}`}
      setView=${(/** @type {any} */ v) => go({ win: viewText(v, rows, cols) }, true)} onSize=${(/** @type {number} */ w, /** @type {number} */ h) => setSize((s) => (s[0] === w && s[1] === h ? s : [w, h]))} onPoint=${setPointer} /></figure>`;
  return html`
    ${values.error ? html`<${Failure} error=${values.error} what="Values cannot be compared" />` : boxes.length ? html`<p role="status">${text.count(total.n, 'value')} in ${text.count(boxes.length, 'place')} ${total.n === 1 ? 'differs' : 'differ'}${total.min <= total.max ? `, by ${text.number(total.min)} to ${text.number(total.max)} ${countUnits}`.trimEnd() : ''}. ${text.count(inSight.length, 'place')} in this picture ${inSight.length === 1 ? 'is' : 'are'} outlined.</p>` : values.value ? html`<p role="status">No value differs.</p>` : html`<p class="dim" role="status">Comparing all values…</p>`}
    ${axes.map((x, d) => d !== plane.y && d !== plane.x && html`<${Slider} key=${d} axis=${x} at=${plane.at[d]} set=${set(d)} />`)}
    <div class="controls"><label><input type="radio" name="mode" checked=${!swipe} onChange=${() => go({ mode: '' }, true)} /> side by side</label>
      <label><input type="radio" name="mode" checked=${swipe} onChange=${() => go({ mode: 'swipe' }, true)} /> swipe</label>
      ${swipe && html`<label>from | to <input type="range" min="0" max="100" value=${split} onInput=${(/** @type {any} */ e) => setSplit(Number(e.target.value))} /></label>`}</div>
    ${two.error && html`<${Failure} error=${two.error} />`}
    <div class=${swipe ? 'three swipe' : 'three'}>
      ${swipe ? one('From | to', 'swipe', map, limits) : html`${one('From', 'older', map, limits)}${one('To', 'newer', map, limits)}`}
      ${one('Difference: to − from' + (each > 1 ? `, the largest of each ${d.y.skip} × ${d.x.skip}` : ''), 'diff', diverging, most || { lo: -1, hi: 1 })}
    </div>
    <div class="bars"><div><${Bar} map=${map} limits=${limits} values=${two.win && two.win.values} units=${units} ends=${[low, high]} /><${Colours} all=${all} state=${state} limits=${limits} values=${two.win && two.win.values} /></div>
      <${Bar} map=${diverging} limits=${most} values=${two.win && /** @type {any} */ (two.win).diff.values} units=${`difference in ${span}`} /></div>`;
}
