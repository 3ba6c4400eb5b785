// An array as a picture: two axes of it on a canvas, sliders for the others, series and
// histogram of what one sees, and the commands that make the same.
import { html, useEffect, useMemo, useRef, useState } from './lib/preact-htm.js';
import { cancelled, get, url, valueURL } from './api.js';
import { go, read, useLoad } from './state.js';
import * as text from './text.js';
import { histogram, maps, percentiles, symmetric } from './colour.js';
import { axes as readAxes, further } from './coords.js';
import { levels, readLevel } from './levels.js';
import { Plane, isUp, useWindow, valueAt } from './plane.js';
import { Copy, Failure, Loading } from './parts.js';
import { Series, seriesColour } from './series.js';

/** @typedef {import('./coords.js').Axis} Axis */

/**
 * The plane that the state of the page chooses.
 * @param {any} info @param {import('./state.js').State} state
 */
export function planeOf(info, state) {
  const n = info.shape.length;
  const colour = isRGB(info);
  const axis = (/** @type {string} */ s, /** @type {number} */ normal) => (/^\d+$/.test(s || '') && Number(s) < n ? Number(s) : normal);
  const x = axis(state.x, colour ? n - 2 : n - 1);
  let y = axis(state.y, colour ? n - 3 : n - 2);
  if (y === x) y = x === n - 1 ? n - 2 : n - 1;
  const typed = (state.at || '').split(',');
  const at = info.shape.map((/** @type {number} */ len, /** @type {number} */ d) => (/^\d+$/.test(typed[d] || '') ? Math.min(len - 1, Number(typed[d])) : 0));
  return { y, x, at, raw: state.raw === '1' };
}

/** Whether the last axis of an array is the colours of pixels. @param {any} info */
function isRGB(info) {
  const n = info.shape.length;
  return n >= 3 && (info.shape[n - 1] === 3 || info.shape[n - 1] === 4) && /^(uint8|\|u1)$/.test(text.dtype(info.data_type));
}

/** @param {string} s "y0:y1,x0:x1" @param {number} rows @param {number} cols @returns {import('./plane.js').View} */
export function viewOf(s, rows, cols) {
  const m = /^([\d.]+):([\d.]+),([\d.]+):([\d.]+)$/.exec(s || '');
  const v = m && { y0: Number(m[1]), y1: Number(m[2]), x0: Number(m[3]), x1: Number(m[4]) };
  return v && v.y0 < v.y1 && v.x0 < v.x1 && v.y1 <= rows && v.x1 <= cols ? v : { y0: 0, y1: rows, x0: 0, x1: cols };
}

/** @param {import('./plane.js').View} v @param {number} rows @param {number} cols */
export function viewText(v, rows, cols) {
  const short = (/** @type {number} */ n) => String(Number(n.toFixed(2)));
  return v.y0 <= 0 && v.x0 <= 0 && v.y1 >= rows && v.x1 >= cols ? '' : `${short(v.y0)}:${short(v.y1)},${short(v.x0)}:${short(v.x1)}`;
}

/** A slider for an axis that is not shown. @param {{ axis: Axis, at: number, set: (i: number) => void }} p */
export function Slider({ axis, at, set }) {
  const [play, setPlay] = useState(false);
  useEffect(() => {
    if (!play) return;
    const timer = setTimeout(() => set((at + 1) % axis.length), 400);
    return () => clearTimeout(timer);
  }, [play, at]);
  return html`<div class="slider"><label><span class="axis">${axis.name}</span>
    <input type="range" min="0" max=${axis.length - 1} value=${at} aria-valuetext=${axis.full(at)} onInput=${(/** @type {any} */ e) => set(Number(e.target.value))} /></label>
    <output>${axis.values ? axis.full(at).slice(axis.name.length + 1) : at} <span class="dim">${axis.values ? `· index ${at}` : `of ${axis.length}`}</span></output>
    <button aria-label=${play ? 'Stop' : `Play ${axis.name}`} onClick=${() => setPlay(!play)} disabled=${axis.length < 2}>${play ? '■' : '▶'}</button></div>`;
}

/**
 * Texts of values of an array: dates of times, numbers of others. Dates come from the server,
 * which knows all calendars.
 * @param {{ db: string }} shown @param {string} rev @param {string} path @param {boolean} raw
 * @param {import('./plane.js').Win | null} win @param {(number | undefined)[]} values
 * @returns {string[]}
 */
export function useTexts({ db }, rev, path, raw, win, values) {
  const times = !!win && win.times;
  const known = times ? values.filter((v) => Number.isFinite(v)) : [];
  const { value } = useLoad((signal) => (known.length ? new Promise((done) => setTimeout(done, 60)).then(() => signal.aborted || get('times', { db, rev, path, decode: raw ? false : 'cf', values: known.join() }, signal)) : Promise.resolve([])), [db, rev, path, raw, ...known]);
  return values.map((v) => (v === undefined ? '' : !times || !Number.isFinite(v) ? text.number(v) : value ? text.label(value[known.indexOf(v)]) : '…'));
}

/** The colour bar, with the histogram of what is seen. ends are texts of both limits. @param {{ map: any, limits: any, values: ArrayLike<number> | null, units: string, ends?: string[] }} p */
export function Bar({ map, limits, values, units, ends }) {
  const ref = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const bins = useMemo(() => (values && limits ? histogram(values, limits, 64) : []), [values, limits && limits.lo, limits && limits.hi]);
  useEffect(() => {
    const c = ref.current;
    if (!c || !map) return;
    c.width = 256;
    c.height = 52;
    const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
    const rgb = (/** @type {number} */ i) => `rgb(${map.rgb[3 * i]} ${map.rgb[3 * i + 1]} ${map.rgb[3 * i + 2]})`;
    for (let i = 0; i < 256; i++) {
      g.fillStyle = rgb(i);
      g.fillRect(i, 40, 1, 12);
    }
    const most = Math.max(1, ...bins);
    g.fillStyle = getComputedStyle(c).getPropertyValue('--dim');
    bins.forEach((n, i) => n && g.fillRect(i * 4, 38 - Math.max(1, (n / most) * 38), 3.4, Math.max(1, (n / most) * 38)));
  });
  if (!limits) return null;
  const [low, high] = ends || [text.number(limits.lo), text.number(limits.hi)];
  let missing = 0;
  for (let i = 0; values && i < values.length; i++) if (Number.isNaN(values[i])) missing++;
  return html`<figure class="bar"><canvas ref=${ref} role="img" aria-label=${`Colours from ${low} to ${high} ${units}, with a histogram of what is seen`} />
    <figcaption><span>${low}</span><span class="dim">${units}</span><span>${high}</span></figcaption>
    ${missing > 0 && values && html`<p class="dim small">${(100 * missing / values.length).toFixed(missing < values.length / 1000 ? 3 : 1)} % missing</p>`}</figure>`;
}

/**
 * Map and range. @param {{ all: any[], state: any, limits: any, values: any, diverging?: boolean }} p
 */
export function Colours({ all, state, limits, values, diverging }) {
  const type = (/** @type {string} */ key, /** @type {string} */ s) => (s === '' || Number.isFinite(Number(s))) && go({ [key]: s }, true);
  const range = (/** @type {number} */ p) => {
    let l = values && percentiles(values, p, 100 - p);
    if (diverging) l = symmetric(l);
    if (l) go({ lo: text.number(l.lo), hi: text.number(l.hi) }, true);
  };
  return html`<fieldset class="controls"><legend class="hidden">Colours</legend>
    <label>Colours <select value=${state.map || (diverging ? 'balance' : all[0]?.name)} onChange=${(/** @type {any} */ e) => go({ map: e.target.value }, true)}>
      ${all.map((m) => html`<option value=${m.name} selected=${m.name === (state.map || (diverging ? 'balance' : all[0]?.name))}>${m.name}</option>`)}</select></label>
    <label>from <input size="8" inputmode="decimal" value=${state.lo || ''} placeholder=${limits ? text.number(limits.lo) : ''} onChange=${(/** @type {any} */ e) => type('lo', e.target.value.trim())} /></label>
    <label>to <input size="8" inputmode="decimal" value=${state.hi || ''} placeholder=${limits ? text.number(limits.hi) : ''} onChange=${(/** @type {any} */ e) => type('hi', e.target.value.trim())} /></label>
    <span class="buttons"><button onClick=${() => range(2)} title="From the 2nd to the 98th percentile of what is seen">2–98 %</button><button onClick=${() => range(0)} title="All values that are seen">all</button><button
      onClick=${() => go({ lo: '', hi: '' }, true)} disabled=${!state.lo && !state.hi}>auto</button></span>
  </fieldset>`;
}

/** The limits that were typed, and others by percentiles. @param {any} state @param {any} auto */
export function limitsOf(state, auto) {
  const typed = (/** @type {string} */ s) => (s !== undefined && s !== '' && Number.isFinite(Number(s)) ? Number(s) : undefined);
  const lo = typed(state.lo), hi = typed(state.hi);
  if (!auto && (lo === undefined || hi === undefined)) return null;
  const l = { lo: lo ?? auto.lo, hi: hi ?? auto.hi };
  return l.lo <= l.hi ? l : { lo: l.hi, hi: l.lo };
}

/** A selection of the command line for what is seen. @param {any} plane @param {import('./plane.js').View} view @param {number[]} shape */
function selection(plane, view, shape) {
  const range = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ n) => (a <= 0 && b >= n ? ':' : `${Math.floor(a)}:${Math.ceil(b)}`);
  return shape.map((n, d) => (d === plane.y ? range(view.y0, view.y1, n) : d === plane.x ? range(view.x0, view.x1, n) : String(plane.at[d]))).join(',');
}

/** The commands that read what is seen. @param {{ shown: import('./main.js').Shown, path: string, select: string, raw: boolean }} p */
export function Commands({ shown, path, select, raw }) {
  const rev = shown.rev || '';
  const target = shown.versions ? `${shown.db}${rev && rev !== 'main' ? '@' + rev : ''}:${path}` : `${shown.db}/${path}`;
  const at = select ? `[${select}]` : '[...]';
  const py = shown.versions
    ? `import zarrdb\na = zarrdb.open(${JSON.stringify(shown.db)}).at(${JSON.stringify(rev || 'main')}).array(${JSON.stringify(path)})\nvalues = a${at}`
    : `import zarr\na = zarr.open_array(${JSON.stringify(valueURL(shown.db, '', path).href)}, mode="r")\nvalues = a${at}`;
  return html`<details class="commands"><summary>Commands for what is shown</summary>
    <${Copy} label="Shell" text=${`zarrdb read ${text.shell(target)}${select ? ` -s ${text.shell(select)}` : ''}${raw ? '' : ' --decode-cf'}`} />
    <${Copy} label="Python" text=${py} />
    <${Copy} label="Table (Parquet)" text=${url('read', { db: shown.db, rev: shown.rev, path, select, decode: raw ? false : 'cf', format: 'parquet' }).href} />
    <${Copy} label="Web viewers" text=${'zarr://' + valueURL(shown.db, shown.rev, path).href} />
    <p class="dim small">Neuroglancer and other viewers open the last address if the server allows their origin: <code>zarrdb serve --origin https://neuroglancer-demo.appspot.com</code></p></details>`;
}

/** Whether elements have a picture. @param {any} info */
export const isNumeric = (info) => /^(bool|u?int\d|b?float\d|complex|datetime64|timedelta64|[<>|=]?[biufcmM]\d)/.test(text.dtype(info.data_type));

/** @param {{ shown: import('./main.js').Shown, info: any, path: string }} p */
export function Picture(p) {
  return p.info.node_type === 'group' ? html`<${Pyramid} ...${p} />` : html`<${Elements} ...${p} all=${[p.info]} />`;
}

/** One picture at several resolutions. @param {{ shown: import('./main.js').Shown, info: any, path: string }} p */
function Pyramid(p) {
  const wanted = p.shown.state.variable;
  const { value, error } = useLoad(() => levels(p.shown, p.info, wanted), [p.shown.db, p.shown.commit, p.path, wanted]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const { all, variables, variable } = value;
  return html`${variables.length > 1 && html`<div class="controls"><label>Variable <select value=${variable} onChange=${(/** @type {any} */ e) => go({ variable: e.target.value, win: '', pts: '', at: '', lo: '', hi: '' })}>
      ${variables.map((v) => html`<option value=${v} selected=${v === variable}>${v}</option>`)}</select></label></div>`}
    ${all.length ? html`<${Elements} key=${variable} ...${p} info=${all[0]} path=${all[0].path} all=${all} />` : html`<p>The group names levels, but they have no arrays with two axes.</p>`}`;
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string, all: any[] }} p all are the levels, the finest first */
function Elements(p) {
  const { shown, info } = p;
  const { value: axes } = useLoad(() => readAxes(shown, info), [shown.db, shown.commit, info.path]);
  if (info.error) return html`<${Failure} error=${{ message: info.error }} what="Values cannot be read" />`;
  if (info.shape.some((/** @type {number} */ n) => n === 0)) return html`<p>The array has no elements: its shape is ${info.shape.join(' × ')}.</p>`;
  if (!axes) return html`<${Loading} />`;
  if (info.shape.length === 0) return html`<${Scalar} ...${p} />`;
  if (!isNumeric(info)) return html`<${Texts} ...${p} axes=${axes} />`;
  if (info.shape.length === 1) return html`<${Series} shown=${shown} info=${info} axes=${axes} along=${0} points=${[[0]]} raw=${shown.state.raw === '1'} alone=${true} /><${Commands} shown=${shown} path=${info.path} select="" raw=${shown.state.raw === '1'} />`;
  return html`<${Flat} ...${p} axes=${axes} />`;
}

/** The heading of an array. @param {{ info: any, units?: string }} p */
export const Title = ({ info, units }) => html`<div class="title"><h1>${typeof info.attributes.long_name === 'string' ? info.attributes.long_name : info.path}</h1>${units && html`<span class="dim">${units}</span>`}</div>`;

/** One value. @param {{ shown: import('./main.js').Shown, info: any }} p */
function Scalar({ shown, info }) {
  const { value, error } = useLoad((signal) => get('read', { db: shown.db, rev: shown.commit, path: info.path, decode: 'cf', times: 'text', format: 'json' }, signal), [shown.commit, info.path]);
  if (error) return html`<${Failure} error=${error} />`;
  return html`<${Title} info=${info} />${value ? html`<p class="scalar">${text.value(value.data[0])} ${String(info.attributes.units ?? '')}</p>` : html`<${Loading} />`}`;
}

/** Elements that are no numbers, the first ones. @param {{ shown: import('./main.js').Shown, info: any, axes: Axis[] }} p */
function Texts({ shown, info, axes }) {
  const most = 200;
  const last = info.shape.length - 1;
  const plane = planeOf(info, shown.state);
  const from = Math.min(plane.at[last], Math.max(0, info.shape[last] - 1));
  const select = info.shape.map((/** @type {number} */ n, /** @type {number} */ d) => (d === last ? `${from}:${Math.min(n, from + most)}` : String(plane.at[d]))).join(',');
  const { value, error } = useLoad((signal) => get('read', { db: shown.db, rev: shown.commit, path: info.path, select, times: 'text', format: 'json' }, signal), [shown.commit, info.path, select]);
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : v)).join(',') }, true);
  return html`<${Title} info=${info} />${axes.map((a, d) => (d !== last || a.length > most) && html`<${Slider} axis=${a} at=${plane.at[d]} set=${set(d)} />`)}
    ${error ? html`<${Failure} error=${error} />` : !value ? html`<${Loading} />` : html`<table class="members"><tbody>${value.data.map((/** @type {any} */ v, /** @type {number} */ i) => html`
      <tr><th scope="row">${axes[last].label(from + i)}</th><td>${text.value(v)}</td></tr>`)}</tbody></table>`}
    <${Commands} shown=${shown} path=${info.path} select=${select} raw=${true} />`;
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string, axes: Axis[], all: any[] }} p */
function Flat({ shown, info, path, axes, all: resolutions }) {
  const { db, commit, state } = shown;
  const plane = planeOf(info, state);
  const rows = info.shape[plane.y], cols = info.shape[plane.x];
  const view = viewOf(state.win, rows, cols);
  const [size, setSize] = useState([0, 0]);
  const [pointer, setPointer] = useState(/** @type {{ y: number, x: number } | null} */ (null));
  const [exact, setExact] = useState(/** @type {{ key: string, text: string } | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const { value: all } = useLoad(maps, []);
  const others = plane.at.filter((/** @type {number} */ _, /** @type {number} */ d) => d !== plane.y && d !== plane.x);
  const colour = isRGB(info) && plane.y === info.shape.length - 3 && plane.x === info.shape.length - 2 && state.rgb !== '0';
  const key = JSON.stringify([db, commit, path, plane.y, plane.x, others, plane.raw]);
  const seen = useWindow((v, o, signal) => readLevel(shown, resolutions, plane, v, o, signal), key, colour ? null : view, size[0], size[1]);
  const natural = useLoad((signal) => isUp(shown, commit, path, plane, signal).catch(() => false), [db, commit, path, plane.y, plane.x]);
  const up = state.flip === '1' ? !natural.value : !!natural.value;
  const rgb = useLoad((signal) => (colour ? readRGB(shown, path, plane, info, signal) : Promise.resolve(null)), [key, colour]);
  const auto = useMemo(() => seen.base && (percentiles(seen.base.values, 2, 98) || { lo: 0, hi: 1 }), [seen.base]);
  const limits = limitsOf(state, auto);
  const map = all && (all.find((m) => m.name === state.map) || all[0]);
  const a = info.attributes, units = plane.raw || / since /.test(String(a.units)) ? '' : String(a.units ?? '');

  const where = pointer && plane.at.map((/** @type {number} */ i, /** @type {number} */ d) => (d === plane.y ? pointer.y : d === plane.x ? pointer.x : i));
  const whereKey = where ? [commit, path, plane.raw, ...where].join() : '';
  useEffect(() => { // the window has float32; the value itself comes a moment later
    if (!where || colour) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const [r, more] = await Promise.all([
          get('read', { db, rev: commit, path, select: where.join(','), decode: plane.raw ? false : 'cf', times: 'text', format: 'json' }, stop.signal),
          further(shown, info, where, stop.signal),
        ]);
        const said = text.value(r.data[0]);
        setExact({ key: whereKey, text: [(seen.win?.times ? text.label(said) : said) + (units && r.data[0] !== 'NaN' ? ' ' + units : ''), ...more].join(' · ') });
      } catch (err) {
        if (!cancelled(err)) setExact({ key: whereKey, text: String(/** @type {any} */ (err).message) });
      }
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [whereKey]);
  const near = pointer && seen.win && !seen.win.times ? valueAt(seen.win, pointer.y, pointer.x) : null;
  const ends = useTexts(shown, commit, path, plane.raw, seen.win, limits ? [limits.lo, limits.hi] : []);

  const points = (state.pts || '').split(';').map((s) => s.split(',').map(Number)).filter((q) => q.length === info.shape.length && q.every((i, d) => Number.isInteger(i) && i >= 0 && i < info.shape[d])).slice(0, 8);
  const rest = axes.map((_, d) => d).filter((d) => d !== plane.y && d !== plane.x && !(colour && d === info.shape.length - 1));
  const along = /^\d+$/.test(state.along || '') && Number(state.along) < axes.length ? Number(state.along) : rest.length ? rest[0] : plane.x;
  const pick = (/** @type {{ y: number, x: number }} */ at) => {
    const q = plane.at.map((/** @type {number} */ i, /** @type {number} */ d) => (d === plane.y ? at.y : d === plane.x ? at.x : i)).join(',');
    const list = (read().pts || '').split(';').filter(Boolean); // of a click before, too, that is not drawn yet
    go({ pts: list.includes(q) ? list.filter((s) => s !== q).join(';') : [...list, q].slice(-8).join(';') });
  };
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : k === plane.y || k === plane.x ? 0 : v)).join(',') }, true);
  const axisChoice = (/** @type {'y' | 'x'} */ which) => html`<label>${which === 'y' ? 'Down' : 'Across'} <select value=${plane[which]} onChange=${(/** @type {any} */ e) => {
    const d = e.target.value, o = which === 'y' ? 'x' : 'y';
    go({ [which]: d, [o]: Number(d) === plane[o] ? String(plane[which]) : String(plane[o]), win: '', at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === plane.y || k === plane.x ? 0 : v)).join(',') });
  }}>${axes.map((x, d) => html`<option value=${d} selected=${d === plane[which]}>${x.name}</option>`)}</select></label>`;
  const save = () => canvas.current && canvas.current.toBlob((b) => b && text.save(`${path.replaceAll('/', '_') || 'array'}.png`, b));
  return html`
    <${Title} info=${info} units=${units} />
    <fieldset class="controls"><legend class="hidden">Axes</legend>${axisChoice('y')}${axisChoice('x')}
      <button onClick=${() => go({ y: String(plane.x), x: String(plane.y), win: '' })} title="Exchange the axes">⇄<span class="hidden"> Exchange the axes</span></button>
      <label><input type="checkbox" checked=${up} onChange=${() => go({ flip: state.flip === '1' ? '' : '1' }, true)} /> rows go up</label>
      <label title="Without scale, offset and missing values of the CF attributes"><input type="checkbox" checked=${plane.raw} onChange=${(/** @type {any} */ e) => go({ raw: e.target.checked ? '1' : '', lo: '', hi: '' }, true)} /> as stored</label>
      ${isRGB(info) && html`<label><input type="checkbox" checked=${colour} onChange=${(/** @type {any} */ e) => go({ rgb: e.target.checked ? '' : '0' })} /> colours of pixels</label>`}
      <button onClick=${save}>Save PNG</button></fieldset>
    ${rest.map((d) => html`<${Slider} key=${d} axis=${axes[d]} at=${plane.at[d]} set=${set(d)} />`)}
    ${seen.error || rgb.error ? html`<${Failure} error=${seen.error || rgb.error} />` : ''}
    <div class="picture">
      <${Plane} shown=${seen} map=${map} limits=${limits} yAxis=${axes[plane.y]} xAxis=${axes[plane.x]} up=${up} view=${view} canvas=${canvas} name=${`Picture of ${path}`}
        setView=${(/** @type {any} */ v) => go({ win: viewText(v, rows, cols) }, true)} onSize=${(/** @type {number} */ w, /** @type {number} */ h) => setSize([w, h])}
        onPoint=${setPointer} onPick=${pick} image=${rgb.value || null}
        marks=${points.map((q, i) => ({ y: q[plane.y], x: q[plane.x], colour: seriesColour(i) }))} />
      <div class="beside">
        <p class="readout" aria-live="polite">${where ? html`<strong>${exact && exact.key === whereKey ? exact.text : near === undefined || near === null ? '…' : text.number(near) + (units ? ' ' + units : '')}</strong><br />
          ${axes[plane.y].full(pointer?.y ?? 0)} · ${axes[plane.x].full(pointer?.x ?? 0)}<br /><span class="dim">element ${where.join(', ')}</span>` : html`<span class="dim">Point for a value, click for a series. Drag to pan; click and turn the wheel, or press + and −, to zoom.</span>`}</p>
        ${!colour && html`<${Bar} map=${map} limits=${limits} values=${seen.win && seen.win.values} units=${units} ends=${ends} />
        <${Colours} all=${all || []} state=${state} limits=${limits} values=${seen.win && seen.win.values} />`}
        <p class="dim small" role="status">${seen.win && !colour && (seen.win.full
          ? /** @type {any} */ (seen.win).level ? `Resolution ${/** @type {any} */ (seen.win).level + 1} of ${resolutions.length} is drawn; zoom in for finer ones.` : seen.win.y.skip * seen.win.x.skip > 1 ? `One of ${seen.win.y.skip} × ${seen.win.x.skip} elements is drawn; zoom in for all.` : 'Every element is drawn.'
          : `A first look from ${text.count(seen.win.chunks, 'chunk')}; more is being read.`)}</p>
      </div>
    </div>
    ${points.length > 0 && html`<${Series} shown=${shown} info=${info} axes=${axes} along=${along} points=${points} raw=${plane.raw} />`}
    <${Commands} shown=${shown} path=${path} select=${selection(plane, view, info.shape)} raw=${plane.raw} />`;
}

/**
 * Pixels with colours of their own, at most 1024 in each direction.
 * @param {import('./main.js').Shown} shown @param {string} path @param {any} plane @param {any} info @param {AbortSignal} signal
 */
async function readRGB(shown, path, plane, info, signal) {
  const every = (/** @type {number} */ n) => `::${Math.max(1, Math.ceil(n / 1024))}`;
  const select = info.shape.map((/** @type {number} */ n, /** @type {number} */ d) => (d === plane.y || d === plane.x ? every(n) : d === info.shape.length - 1 ? ':' : String(plane.at[d])));
  const r = await fetch(url('read', { db: shown.db, rev: shown.commit, path, select: select.join(','), format: 'png' }), { signal });
  if (!r.ok) throw new Error((await r.json()).error);
  return createImageBitmap(await r.blob());
}
