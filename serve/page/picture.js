// An array as a picture: two axes of it on a canvas, sliders for the others, series and
// histogram of what one sees, and the commands that make the same.
import { html, useEffect, useRef, useState } from './lib/preact-htm.js';
import { cancelled, get, getBytes, getOnce, url, valueURL } from './api.js';
import { go, read, useLoad } from './state.js';
import * as text from './text.js';
import { mapOf, maps } from './colour.js';
import { axes as readAxes } from './coords.js';
import { labelIndex, levels, readLabel, readLevel } from './levels.js';
import { Plane, proportion, useWindow } from './plane.js';
import { Copy, Failure, Loading } from './parts.js';
import { Plate, Well, fieldsOf, plateOf } from './plate.js';
import { Series, seriesColour } from './series.js';

/** @typedef {import('./coords.js').Axis} Axis */

/**
 * The plane that the state of the page chooses.
 * @param {any} info @param {import('./state.js').State} state @param {boolean} [colour] whether the last axis is the colours of pixels
 */
export function planeOf(info, state, colour) {
  const n = info.shape.length;
  const axis = (/** @type {string} */ s, /** @type {number} */ normal) => (/^\d+$/.test(s || '') && Number(s) < n ? Number(s) : normal);
  const x = axis(state.x, colour ? n - 2 : n - 1);
  let y = axis(state.y, colour ? n - 3 : n - 2);
  if (y === x) y = x === n - 1 ? n - 2 : n - 1;
  const typed = (state.at || '').split(',');
  const at = info.shape.map((/** @type {number} */ len, /** @type {number} */ d) => (/^\d+$/.test(typed[d] || '') ? Math.min(len - 1, Number(typed[d])) : 0));
  return { y, x, at, raw: state.raw === '1' };
}

/** Whether the last axis of an array can be the colours of pixels. @param {any} info */
function canRGB(info) {
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

/**
 * A slider for an axis that is not shown. The label is that of the picture: drawn is the index that it is of, and label its text.
 * @param {{ axis: Axis, at: number, set: (i: number) => void, drawn?: number, label?: string, film?: (() => void) | false, find?: (text: string) => Promise<number> }} p film saves an animation, find is the index that a text means
 */
export function Slider({ axis, at, set, drawn, label, film, find }) {
  const [typed, setTyped] = useState(''), [wrong, setWrong] = useState('');
  const look = (/** @type {string} */ s) => {
    setTyped(s);
    setWrong('');
    if (s.trim() && find) find(s).then((i) => { setTyped(''); set(i); }, (err) => setWrong(err.message));
  };
  const [play, setPlay] = useState(false);
  const last = useRef(0);
  const shown = drawn ?? at, said = axis.labels ? axis.label(shown) : label ?? String(shown);
  useEffect(() => { // the next step waits for the picture of this one
    if (!play || shown !== at) return;
    const timer = setTimeout(() => {
      last.current = performance.now();
      set((at + 1) % axis.length);
    }, Math.max(0, last.current + 400 - performance.now()));
    return () => clearTimeout(timer);
  }, [play, at, shown]);
  return html`<div class="slider"><label><span class="axis">${axis.name}</span>
    <input type="range" min="0" max=${axis.length - 1} value=${at} aria-valuetext=${`${axis.name} ${said}`} onInput=${(/** @type {any} */ e) => set(Number(e.target.value))} /></label>
    <output>${said === String(shown) ? html`${shown} <span class="dim">of ${axis.length}</span>` : html`${said} <span class="dim">· index ${shown}</span>`}</output>
    ${find && html`<input class="goto" size="11" spellcheck=${false} placeholder=${axis.labelled ? 'go to' : 'index'} aria-label=${`Go to ${axis.name}: a label, or # and an index`} title="A label, such as a date or a level, or # and an index"
      aria-invalid=${!!wrong} value=${typed} onChange=${(/** @type {any} */ e) => look(e.target.value)} />`}
    <button aria-label=${play ? 'Stop' : `Play ${axis.name}`} onClick=${() => { last.current = performance.now(); setPlay(!play); }} disabled=${axis.length < 2}>${play ? '■' : '▶'}</button>${film && axis.length > 1 && html`<button title=${axis.length > 200 ? `Save one of ${Math.ceil(axis.length / 200)} steps as an animation` : 'Save all steps as an animation'} onClick=${film}>gif</button>`}${wrong && html`<span class="bad small" role="alert">${wrong}</span>`}</div>`;
}

/** The colour bar, with the histogram of what is seen. @param {{ map: any, win: import('./plane.js').Win | null, units: string }} p */
export function Bar({ map, win, units }) {
  const ref = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useEffect(() => {
    const c = ref.current;
    if (!c || !map || !win) return;
    c.width = 276;
    c.height = 52;
    const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
    const rgb = (/** @type {number} */ i) => `rgb(${map.rgb[3 * i]} ${map.rgb[3 * i + 1]} ${map.rgb[3 * i + 2]})`;
    for (let i = 0; i < 256; i++) {
      g.fillStyle = rgb(i);
      g.fillRect(10 + i, 40, 1, 12);
    }
    for (const [n, x, i] of [[win.under, 10, 0], [win.over, 266, 255]]) { // a point where values lie beyond
      if (!n) continue;
      g.fillStyle = rgb(i);
      g.beginPath();
      g.moveTo(x, 40);
      g.lineTo(x + (i ? 9 : -9), 46);
      g.lineTo(x, 52);
      g.fill();
    }
    const bins = win.bins || [], most = Math.max(1, ...bins);
    g.fillStyle = getComputedStyle(c).getPropertyValue('--dim');
    bins.forEach((n, i) => n && g.fillRect(10 + i * 4, 38 - Math.max(1, (n / most) * 38), 3.4, Math.max(1, (n / most) * 38)));
  });
  if (!win || win.pixels) return null;
  const n = win.shades.length, part = (/** @type {number} */ m) => (100 * m / n).toFixed(m < n / 1000 ? 3 : 1) + ' %';
  const missing = win.missing > 0 && html`<p class="dim small"><span class="swatch missing" />${part(win.missing)} missing</p>`;
  if (win.classes) {
    const rest = n - win.missing - win.classes.reduce((m, c) => m + c.count, 0);
    return html`<figure class="bar"><ul class="legend" aria-label="Classes">${win.classes.map((c) => html`<li class=${c.count ? '' : 'dim'}><span class="swatch" style=${{ background: '#' + c.colour }} />${c.value} ${c.text} <span class="dim small">${c.count ? part(c.count) : ''}</span></li>`)}
      ${rest > 0 && html`<li><span class="swatch" style=${{ background: '#e4e4e4' }} />other values <span class="dim small">${part(rest)}</span></li>`}</ul>${missing}</figure>`;
  }
  const [low, high] = win.ends;
  let free = 0.08;
  const labels = (win.bar || []).filter((t) => { // that have room
    const half = Math.max(0.02, 0.013 * t.text.length);
    if (t.at - half < free || t.at + half > 0.92 && t.at > 0.9) return false;
    free = t.at + half;
    return true;
  });
  return html`<figure class="bar"><canvas ref=${ref} role="img" aria-label=${`Colours from ${low} to ${high} ${units}, with a histogram of what is seen`} />
    <div class="ticks" aria-hidden="true">${labels.map((t) => html`<span style=${{ left: `${(10 + 256 * t.at) / 2.76}%` }}>${t.text}</span>`)}</div>
    <figcaption><span>${low}</span><span class="dim">${units}</span><span>${high}</span></figcaption>
    ${win.under + win.over > 0 && html`<p class="dim small">${win.under > 0 && `◂ ${part(win.under)} less`}${win.under > 0 && win.over > 0 && ', '}${win.over > 0 && `${part(win.over)} more ▸`}</p>`}${missing}</figure>`;
}

/**
 * Map and range. ratios says whether there is a choice of a scale of ratios.
 * @param {{ all: any[], state: any, win: import('./plane.js').Win | null, ratios?: boolean }} p
 */
export function Colours({ all, state, win, ratios }) {
  if (win?.classes) return null;
  const chosen = (state.map || all[0]?.name || '').replace(/_r$/, ''), turned = /_r$/.test(state.map || '');
  const type = (/** @type {string} */ key, /** @type {string} */ s) => (s === '' || Number.isFinite(Number(s))) && go({ [key]: s }, true);
  const range = (/** @type {'most' | 'all'} */ which) => win && win[which] && go({ lo: String(win[which].lo), hi: String(win[which].hi) }, true);
  return html`<fieldset class="controls"><legend class="hidden">Colours</legend>
    <label>Colours <select value=${chosen} onChange=${(/** @type {any} */ e) => go({ map: e.target.value + (turned ? '_r' : '') }, true)}>
      ${all.map((m) => html`<option value=${m.name} selected=${m.name === chosen}>${m.name}</option>`)}</select></label>
    <label><input type="checkbox" checked=${turned} onChange=${(/** @type {any} */ e) => go({ map: chosen + (e.target.checked ? '_r' : '') }, true)} /> reversed</label>
    ${ratios && !win?.times && html`<label title="Equal ratios at equal distances"><input type="checkbox" checked=${state.log === '1'} onChange=${(/** @type {any} */ e) => go({ log: e.target.checked ? '1' : '' }, true)} /> log</label>`}
    <label>from <input size="8" inputmode="decimal" value=${state.lo || ''} placeholder=${win && !win.times ? win.ends[0] : ''} onChange=${(/** @type {any} */ e) => type('lo', e.target.value.trim())} /></label>
    <label>to <input size="8" inputmode="decimal" value=${state.hi || ''} placeholder=${win && !win.times ? win.ends[1] : ''} onChange=${(/** @type {any} */ e) => type('hi', e.target.value.trim())} /></label>
    <span class="buttons"><button onClick=${() => range('most')} title="From the 2nd to the 98th percentile of what is seen">2–98 %</button><button onClick=${() => range('all')} title="All values that are seen">all</button><button
      onClick=${() => go({ lo: '', hi: '' }, true)} disabled=${!state.lo && !state.hi} title="From the 2nd to the 98th percentile of the whole array">auto</button></span>
  </fieldset>`;
}

/**
 * The limits of colours for a request: those that were typed, and else those that the server chose for the first one.
 * @param {any} state @param {string} key of the array
 * @returns {{ limits: { lo?: number, hi?: number, log: boolean }, learn: (win: import('./plane.js').Win) => void }}
 */
export function useLimits(state, key) {
  const auto = useRef(/** @type {any} */ ({ key: '' }));
  const typed = (/** @type {string} */ s) => (s !== undefined && s !== '' && Number.isFinite(Number(s)) ? Number(s) : undefined);
  const log = state.log === '1', lo = typed(state.lo), hi = typed(state.hi), known = auto.current.key === key ? auto.current.limits : null;
  return {
    limits: { lo: lo ?? known?.lo, hi: hi ?? known?.hi, log },
    learn: (win) => { if (lo === undefined && hi === undefined && !win.pixels && !win.classes) auto.current = { key, limits: win.limits }; },
  };
}

/** A selection of the command line for what is seen. @param {any} plane @param {import('./plane.js').View} view @param {number[]} shape @param {number} [whole] an axis that is seen whole */
function selection(plane, view, shape, whole) {
  const range = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ n) => (a <= 0 && b >= n ? ':' : `${Math.floor(a)}:${Math.ceil(b)}`);
  return shape.map((n, d) => (d === plane.y ? range(view.y0, view.y1, n) : d === plane.x ? range(view.x0, view.x1, n) : d === whole ? ':' : String(plane.at[d]))).join(',');
}

/** Python that makes the values of stored ones, by the CF attributes. @param {any} a attributes */
function decoding(a) {
  const one = (/** @type {any} */ v) => (typeof v === 'number' ? v : Array.isArray(v) && v.length === 1 && typeof v[0] === 'number' ? v[0] : undefined);
  const missing = ['_FillValue', 'missing_value'].map((k) => one(a[k])).filter((v) => v !== undefined), scale = one(a.scale_factor), offset = one(a.add_offset);
  return (missing.length ? `import numpy\nvalues = numpy.where(numpy.isin(values, ${JSON.stringify(missing)}), numpy.nan, values)\n` : '')
    + (scale !== undefined || offset !== undefined ? `values = values * ${scale ?? 1} + ${offset ?? 0}\n` : '');
}

/** The commands that read what is seen. @param {{ shown: import('./main.js').Shown, path: string, select: string, raw: boolean, attributes?: any }} p */
export function Commands({ shown, path, select, raw, attributes }) {
  const rev = shown.rev || '', own = shown.versions ? `${shown.target}${rev && rev !== 'main' ? '@' + rev : ''}` : shown.target;
  const target = shown.versions ? `${own}:${path}` : `${shown.target}/${path}`;
  const at = select ? `[${select}]` : '[...]', decode = raw ? '' : decoding(attributes || {});
  const names = path.split('/'), name = names.pop(), group = names.length ? `, group=${JSON.stringify(names.join('/'))}` : '';
  const py = (shown.versions
    ? `import zarrdb\na = zarrdb.open(${JSON.stringify(shown.target)}).at(${JSON.stringify(rev || 'main')}).array(${JSON.stringify(path)})\nvalues = a${at}\n`
    : `import zarr\na = zarr.open_array(${JSON.stringify(target)}, mode="r")\nvalues = a${at}\n`) + decode;
  const xr = `import xarray\na = xarray.${shown.versions ? `open_dataset(${JSON.stringify(own)}, engine="zarrdb"${group})` : `open_zarr(${JSON.stringify(shown.target)}${group}, consolidated=False)`}[${JSON.stringify(name)}]${select ? at : ''}`;
  return html`<details class="commands"><summary>Commands for what is shown</summary>
    <${Copy} label="Shell" text=${`zarrdb read ${text.shell(target)}${select ? ` -s ${text.shell(select)}` : ''}${raw ? '' : ' --decode-cf'}`} />
    <${Copy} label="Python" text=${py.trimEnd()} />
    <${Copy} label="xarray" text=${xr} />
    <${Copy} label="Table (Parquet)" text=${url('read', { db: shown.db, rev: shown.rev, path, select, decode: raw ? false : 'cf', format: 'parquet' }).href} />
    <${Copy} label="Web viewers" text=${'zarr://' + valueURL(shown.db, shown.rev, path).href} />
    <p class="dim small">Neuroglancer and other viewers open the last address if the server allows their origin: <code>zarrdb serve --origin https://neuroglancer-demo.appspot.com</code></p></details>`;
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string, members?: any[] }} p members are those of a group */
export function Picture(p) {
  const fields = p.info.node_type === 'group' && !p.info.levels?.length ? fieldsOf(p.info.attributes) : null;
  if (fields) return html`<${fields.length > 1 ? Well : Field} ...${p} fields=${fields} />`;
  if (p.info.node_type === 'group' && !p.info.levels?.length && plateOf(p.info.attributes)) return html`<${Plate} ...${p} />`;
  return p.info.node_type === 'group' ? html`<${Pyramid} ...${p} />` : html`<${Elements} ...${p} all=${[p.info]} />`;
}

/** The only field of a well. @param {{ shown: import('./main.js').Shown, path: string, fields: string[] }} p */
function Field({ shown, path, fields }) {
  const at = `${path}/${fields[0]}`;
  const { value, error } = useLoad(() => Promise.all([getOnce('info', { db: shown.db, rev: shown.commit, path: at }), getOnce('ls', { db: shown.db, rev: shown.commit, path: at })]), [shown.db, shown.commit, at]);
  if (error) return html`<${Failure} error=${error} what=${'/' + at} />`;
  return value ? html`<${Pyramid} shown=${shown} info=${value[0]} path=${at} members=${value[1]} />` : html`<${Loading} />`;
}

/**
 * The labels of an image: their names, and those that are chosen, with their levels and names of axes.
 * @param {import('./main.js').Shown} shown @param {string} path of the image @param {string | undefined} wanted
 * @returns {Promise<{ names: string[], chosen: import('./levels.js').Label | null }>}
 */
async function labelsOf(shown, path, wanted) {
  const load = (/** @type {string} */ p) => getOnce('info', { db: shown.db, rev: shown.commit, path: p });
  const a = (await load(path + '/labels').catch(() => null))?.attributes, list = a?.ome?.labels ?? a?.labels;
  const names = Array.isArray(list) ? list.filter((n) => typeof n === 'string').slice(0, 100) : [];
  if (!wanted || !names.includes(wanted)) return { names, chosen: null };
  const { all } = await levels(shown, await load(`${path}/labels/${wanted}`));
  return { names, chosen: all.length ? { name: wanted, all, dims: (await readAxes(shown, all[0])).axes.map((x) => x.name) } : null };
}

/** One picture at several resolutions. @param {{ shown: import('./main.js').Shown, info: any, path: string, members?: any[] }} p */
function Pyramid(p) {
  const wanted = p.shown.state.variable;
  const { value, error } = useLoad(() => levels(p.shown, p.info, wanted), [p.shown.db, p.shown.commit, p.path, wanted]);
  const label = p.shown.state.label, has = (p.members || []).some((m) => m.node_type === 'group' && m.path === p.path + '/labels');
  const labels = useLoad(() => (has ? labelsOf(p.shown, p.path, label) : Promise.resolve({ names: [], chosen: null })), [p.shown.db, p.shown.commit, p.path, has, label]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  const { all, variables, variable } = value;
  return html`${variables.length > 1 && html`<div class="controls"><label>Variable <select value=${variable} onChange=${(/** @type {any} */ e) => go({ variable: e.target.value, win: '', pts: '', at: '', lo: '', hi: '' })}>
      ${variables.map((v) => html`<option value=${v} selected=${v === variable}>${v}</option>`)}</select></label></div>`}
    ${all.length ? html`<${Elements} key=${variable} ...${p} group=${p.info.attributes} info=${all[0]} path=${all[0].path} all=${all} labels=${labels.value} />` : html`<p>The group names levels, but they have no arrays with two axes.</p>`}`;
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string, all: any[], group?: any, labels?: any }} p all are the levels, the finest first */
function Elements(p) {
  const { shown, info } = p;
  const centre = text.longitude(shown.state.centre);
  const { value } = useLoad(() => readAxes(shown, info, centre), [shown.db, shown.commit, info.path, centre]);
  if (info.error) return html`<${Failure} error=${{ message: info.error }} what="Values cannot be read" />`;
  if (info.shape.some((/** @type {number} */ n) => n === 0)) return html`<p>The array has no elements: its shape is ${info.shape.join(' × ')}.</p>`;
  if (info.shape.length === 0) return html`<${Scalar} ...${p} />`;
  if (!value) return html`<${Loading} />`;
  const { axes, parts, colours } = value, raw = shown.state.raw === '1';
  const lines = info.shape.length === 1 && (text.isNumeric(info) || parts.length > 0);
  if (lines) return html`<${Series} shown=${shown} info=${info} axes=${axes} parts=${parts} along=${0} points=${[[0]]} raw=${raw} alone=${true} />${text.isNumeric(info) ? html`<${Commands} shown=${shown} path=${info.path} select="" raw=${raw} attributes=${info.attributes} />` : html`<${Texts} ...${p} axes=${axes} />`}`;
  if (!text.isNumeric(info)) return html`<${Texts} ...${p} axes=${axes} />`;
  return html`<${Flat} ...${p} axes=${axes} parts=${parts} colours=${colours} />`;
}

/** The heading of an array. @param {{ info: any, units?: string }} p */
export const Title = ({ info, units }) => html`<div class="title"><h1>${typeof info.attributes.long_name === 'string' ? info.attributes.long_name : info.path}</h1>${units && html`<span class="dim">${units}</span>`}</div>`;

/** One value. @param {{ shown: import('./main.js').Shown, info: any }} p */
function Scalar({ shown, info }) {
  const { value, error } = useLoad((signal) => get('point', { db: shown.db, rev: shown.commit, path: info.path, decode: 'cf' }, signal), [shown.commit, info.path]);
  if (error) return html`<${Failure} error=${error} />`;
  return html`<${Title} info=${info} />${value ? html`<p class="scalar">${value.value} ${value.units}</p>` : html`<${Loading} />`}`;
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

/**
 * What was read, without a picture that is of other axes or another array: it would be drawn on the axes of this one.
 * @template {{ win: any, base: any }} S @param {S} got @param {string} axesKey @returns {S}
 */
export const fitting = (got, axesKey) => (got.win && got.win.axesKey !== axesKey ? { ...got, win: null, base: null } : got);

/**
 * The channels that the metadata of an OME-Zarr image names, with their colours and windows.
 * @param {any} attributes of the group @param {Axis[]} axes
 * @returns {{ axis: number, all: { label: string, colour: string, lo: any, hi: any, active: boolean }[] } | null}
 */
function channelsOf(attributes, axes) {
  const list = (attributes?.ome?.omero || attributes?.omero)?.channels, axis = axes.findIndex((a) => a.name === 'c' || a.name === 'channel');
  if (!Array.isArray(list) || axis < 0) return null;
  const given = ['00ff00', 'ff0000', '4080ff', 'ff00ff', '00ffff', 'ffff00', 'ffffff'];
  return { axis, all: list.slice(0, Math.min(16, axes[axis].length)).map((c, i) => ({
    label: typeof c?.label === 'string' ? c.label : `channel ${i}`, colour: /^[0-9a-f]{6}$/i.test(c?.color) ? c.color : given[i % given.length],
    lo: Number.isFinite(c?.window?.start) ? c.window.start : '', hi: Number.isFinite(c?.window?.end) ? c.window.end : '', active: c?.active !== false,
  })) };
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string, axes: Axis[], parts: string[], colours: boolean, all: any[], group?: any, labels?: { names: string[], chosen: import('./levels.js').Label | null } }} p group are the attributes of a pyramid */
function Flat({ shown, info, path, axes, parts, colours, all: resolutions, group, labels }) {
  const { db, commit, state } = shown;
  const last = info.shape.length - 1;
  const wantsColour = canRGB(info) && (state.rgb ? state.rgb === '1' : colours);
  const plane = planeOf(info, state, wantsColour);
  const colour = wantsColour && plane.y !== last && plane.x !== last;
  const rows = info.shape[plane.y], cols = info.shape[plane.x];
  const named = colour ? null : channelsOf(group, axes), channels = named && named.axis !== plane.y && named.axis !== plane.x ? named : null;
  const chosen = channels ? channels.all.map((c, i) => (state.ch ? state.ch.split(',').includes(String(i)) : c.active) ? i : -1).filter((i) => i >= 0) : [];
  const mixed = channels ? chosen.map((i) => `${i}:${channels.all[i].colour}:${channels.all[i].lo}:${channels.all[i].hi}`).join() : ''; // added colours
  const free = mixed && channels ? channels.axis : -1; // an axis without a slider, of which the first chosen channel stands for one
  if (free >= 0) plane.at[free] = chosen[0];
  const whole = colour ? last : chosen.length > 1 ? free : -1; // an axis that is seen whole
  const view = viewOf(state.win, rows, cols);
  const [size, setSize] = useState([0, 0]);
  const [pointer, setPointer] = useState(/** @type {{ y: number, x: number } | null} */ (null));
  const [exact, setExact] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const { value: all } = useLoad(maps, []);
  const globe = [axes[plane.y].globe, axes[plane.x].globe].sort().join() === 'lat,lon', coasts = globe && state.coast === '1';
  const label = labels?.chosen && labels.chosen.dims.includes(axes[plane.y].name) && labels.chosen.dims.includes(axes[plane.x].name) ? labels.chosen : null;
  const round = globe ? axes.findIndex((a) => a.round) : -1, centre = round >= 0 ? text.longitude(state.centre) : '';
  const roll = (/** @type {number} */ d) => d === round && centre !== '' ? axes[d].roll : 0;
  const yAxis = roll(plane.y) ? axes[plane.y].rolled() : axes[plane.y], xAxis = roll(plane.x) ? axes[plane.x].rolled() : axes[plane.x];
  const stored = (/** @type {number} */ d, /** @type {number} */ i) => (roll(d) ? axes[d].stored(i) : i), onMap = (/** @type {number} */ d, /** @type {number} */ i) => (roll(d) ? axes[d].onMap(i) : i);
  const { value: coast } = useLoad(() => (coasts ? getOnce('coast', { db, rev: commit, path, y: plane.y, x: plane.x, centre: centre || false }) : Promise.resolve([])), [db, commit, path, plane.y, plane.x, coasts, centre]);
  const others = plane.at.filter((/** @type {number} */ _, /** @type {number} */ d) => d !== plane.y && d !== plane.x && !(colour && d === last) && d !== free);
  const { limits, learn } = useLimits(state, JSON.stringify([db, commit, path, plane.raw, state.log]));
  const key = JSON.stringify([db, commit, path, plane.y, plane.x, others, plane.raw, colour, state.lo, state.hi, state.log, mixed, centre, label?.name]);
  const axesKey = JSON.stringify([db, commit, path, plane.y, plane.x, plane.raw, colour, centre]);
  const got = useWindow(async (v, o, signal) => {
    const [win, mask] = await Promise.all([readLevel(shown, resolutions, plane, v, { ...o, colour, limits, channels: mixed, caxis: channels?.axis, centre }, signal),
      label ? readLabel(shown, label, axes.map((a) => a.name), info.shape, plane, v, o, signal) : null]);
    learn(win);
    return { ...win, full: win.full && (!mask || mask.full), mask, index: plane.at, axesKey };
  }, key, view, size[0], size[1]);
  const seen = fitting(got, axesKey);
  const drawn = /** @type {any} */ (seen.win);
  const up = axes[plane.y].up !== (state.flip === '1');
  const opacity = /^[01](\.\d+)?$/.test(state.opacity || '') ? Math.min(1, Number(state.opacity)) : 0.5;
  const tall = proportion(axes[plane.y], axes[plane.x]), room = innerWidth - 340;
  const below = tall <= 0.8 && tall > 1 / 6 && (innerWidth <= 1150 || Math.min(room, 0.47 * innerHeight / tall) > 1.1 * Math.min(room - 320, 0.62 * innerHeight / tall)); // where a picture of all of the width is larger
  const map = all && mapOf(all, state.map);
  const a = info.attributes, units = plane.raw || drawn?.times || / since /.test(String(a.units)) ? '' : String(a.units ?? '');

  const where = pointer && plane.at.map((/** @type {number} */ i, /** @type {number} */ d) => (d === plane.y ? stored(d, pointer.y) : d === plane.x ? stored(d, pointer.x) : colour && d === last ? ':' : d === whole ? `${chosen[0]}:${chosen[chosen.length - 1] + 1}` : i));
  const whereKey = where ? [commit, path, plane.raw, label?.name, ...where].join() : '';
  useEffect(() => {
    if (!where) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const [value, id] = await Promise.all([get('point', { db, rev: commit, path, select: where.join(','), decode: plane.raw ? false : 'cf' }, stop.signal),
          label ? get('point', { db, rev: commit, path: label.all[0].path, select: labelIndex(label, axes.map((a) => a.name), info.shape, where.map(Number)).join(',') }, stop.signal) : null]);
        setExact({ key: whereKey, ...value, more: [...value.more, ...(id && label ? [`${label.name} ${id.value === '0' ? 'none' : id.value}`] : [])] });
      } catch (err) {
        if (!cancelled(err)) setExact({ key: whereKey, value: String(/** @type {any} */ (err).message), more: [] });
      }
    }, 60);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [whereKey]);
  const at = exact && exact.key === whereKey ? exact : null;
  const said = () => { // the value under the pointer, of each chosen channel
    const values = at.value.split(', '), named = free >= 0 && channels && values.length === chosen[chosen.length - 1] - chosen[0] + 1;
    return [named ? chosen.map((i) => `${channels.all[i].label} ${values[i - chosen[0]]}`).join(', ') : at.value, at.units && !plane.raw ? ' ' + at.units : ''].join('');
  };

  const points = (state.pts || '').split(';').map((s) => s.split(',').map(Number)).filter((q) => q.length === info.shape.length && q.every((i, d) => Number.isInteger(i) && i >= 0 && i < info.shape[d])).slice(0, 8);
  const rest = axes.map((_, d) => d).filter((d) => d !== plane.y && d !== plane.x && !(colour && d === last) && d !== free);
  const along = /^\d+$/.test(state.along || '') && Number(state.along) < axes.length ? Number(state.along) : rest.length ? rest[0] : plane.x;
  const pick = (/** @type {{ y: number, x: number }} */ at) => {
    const q = plane.at.map((/** @type {number} */ i, /** @type {number} */ d) => (d === plane.y ? stored(d, at.y) : d === plane.x ? stored(d, at.x) : i)).join(',');
    const list = (read().pts || '').split(';').filter(Boolean); // of a click before, too, that is not drawn yet
    go({ pts: list.includes(q) ? list.filter((s) => s !== q).join(';') : [...list, q].slice(-8).join(';') });
  };
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : k === plane.y || k === plane.x ? 0 : v)).join(',') }, true);
  const axisChoice = (/** @type {'y' | 'x'} */ which) => html`<label>${which === 'y' ? 'Down' : 'Across'} <select value=${plane[which]} onChange=${(/** @type {any} */ e) => {
    const d = e.target.value, o = which === 'y' ? 'x' : 'y';
    go({ [which]: d, [o]: Number(d) === plane[o] ? String(plane[which]) : String(plane[o]), win: '', at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === plane.y || k === plane.x ? 0 : v)).join(',') });
  }}>${axes.map((x, d) => html`<option value=${d} selected=${d === plane[which]}>${x.name}</option>`)}</select></label>`;
  const part = { ...view }; // in stored elements; a view over the edge has all of them
  for (const [d, a, b] of /** @type {[number, 'y0' | 'x0', 'y1' | 'x1'][]} */ ([[plane.y, 'y0', 'y1'], [plane.x, 'x0', 'x1']])) {
    const n = info.shape[d], by = roll(d);
    if (!by || view[a] <= 0 && view[b] >= n) continue;
    const inside = Math.ceil(view[b]) + by <= n ? by : Math.floor(view[a]) + by >= n ? by - n : null;
    part[a] = inside === null ? 0 : view[a] + inside;
    part[b] = inside === null ? n : view[b] + inside;
  }
  const save = (/** @type {() => Promise<void>} */ f) => f().then(() => setFailed(null), setFailed);
  const values = (/** @type {string} */ format) => async () => { // all elements in sight
    const q = { db, rev: commit, path, select: selection(plane, part, info.shape, whole), decode: plane.raw ? false : /** @type {const} */ ('cf') };
    const file = (path.replaceAll('/', '_') || 'array') + '.' + format;
    if (format === 'parquet') return text.saveFrom(file, url('read', { ...q, format }).href);
    if (format !== 'csv') return text.save(file, new Blob([(await getBytes('read', { ...q, format })).bytes]));
    const { data, shape } = await get('read', { ...q, times: 'text', format: 'json' });
    const y0 = Math.floor(part.y0), x0 = Math.floor(part.x0), [m, n, by] = plane.y < plane.x ? [shape[0], shape[1], [shape[1], 1]] : [shape[1], shape[0], [1, shape[1]]];
    const table = Array.from({ length: m }, (_, i) => Array.from({ length: n }, (_, k) => data[i * by[0] + k * by[1]]));
    const cell = (/** @type {any} */ v) => (v === null || v === 'NaN' || v === 'NaT' ? '' : `"${String(v).replaceAll('"', '""').replace(/^[=+@\t\r]/, "'$&")}"`.replace(/^"(-?[\d.e+-]+)"$/, '$1'));
    const names = async (/** @type {number} */ d, /** @type {number} */ first, /** @type {number} */ count) => {
      const a = axes[d], out = /** @type {string[]} */ ([]), most = 1 << 16;
      if (a.labels || !a.labelled) for (let k = 0; k < count; k++) out.push(a.label(first + k));
      else for (let k = 0; k < count; k += most) out.push(...await get('labels', { db, rev: commit, path, axis: d, first: first + k, count: Math.min(most, count - k) }));
      return out.map((s) => cell(s.replace(/°$/, '')));
    };
    const down = await names(plane.y, y0, table.length), across = await names(plane.x, x0, table[0].length);
    const lines = [[cell(`${axes[plane.y].name}/${axes[plane.x].name}`), ...across], ...table.map((/** @type {any[]} */ r, /** @type {number} */ k) => [down[k], ...r.map(cell)])];
    text.save(file, new Blob([lines.map((l) => l.join(',') + '\n').join('')], { type: 'text/csv' }));
  };
  const drawing = async (/** @type {any} */ more) => new Blob([(await getBytes('figure', { db, rev: commit, path, decode: plane.raw ? false : 'cf', transposed: plane.y > plane.x ? '1' : false, flip: state.flip === '1' ? '1' : false, map: map && map.name,
    ...(mixed && channels ? { channels: mixed, caxis: channels.axis, note: chosen.map((i) => channels.all[i].label).join(', ') } : { lo: drawn?.limits?.lo, hi: drawn?.limits?.hi, log: limits.log && '1' }),
    coast: coasts && '1', centre: centre || false, numbers: colour ? false : '1', guess: colour ? '1' : false, ...more })).bytes], { type: more.animate ? 'image/gif' : 'image/png' });
  const inSight = selection(plane, view, info.shape, colour ? last : -1);
  const film = (/** @type {number} */ d) => async () => text.save(`${path.replaceAll('/', '_') || 'array'}_${axes[d].name}.gif`, await drawing({ select: inSight.split(',').map((s, k) => (k === d ? ':' : s)).join(), width: 600, animate: String(d) }));
  const saved = async () => text.save(`${path.replaceAll('/', '_') || 'array'}.png`, await drawing({ select: inSight, width: 900 }));
  return html`
    <${Title} info=${info} units=${units} />
    <fieldset class="controls"><legend class="hidden">Axes</legend>${axisChoice('y')}${axisChoice('x')}
      <button onClick=${() => go({ y: String(plane.x), x: String(plane.y), win: '' })} title="Exchange the axes">⇄<span class="hidden"> Exchange the axes</span></button>
      <label><input type="checkbox" checked=${up} onChange=${() => go({ flip: state.flip === '1' ? '' : '1' }, true)} /> rows go up</label>
      <label title="Without scale, offset and missing values of the CF attributes"><input type="checkbox" checked=${plane.raw} onChange=${(/** @type {any} */ e) => go({ raw: e.target.checked ? '1' : '', lo: '', hi: '' }, true)} /> as stored</label>
      ${canRGB(info) && html`<label><input type="checkbox" checked=${colour} onChange=${(/** @type {any} */ e) => go({ rgb: e.target.checked === colours ? '' : e.target.checked ? '1' : '0' })} /> colours of pixels</label>`}
      ${globe && html`<label title="Natural Earth, 1:110 million"><input type="checkbox" checked=${coasts} onChange=${(/** @type {any} */ e) => go({ coast: e.target.checked ? '1' : '' }, true)} /> coasts</label>`}
      ${round >= 0 && html`<label title="The longitude in the middle of the map">centre <input size="6" list="centres" inputmode="decimal" placeholder="stored" value=${centre}
        onChange=${(/** @type {any} */ e) => go({ centre: text.longitude(e.target.value.trim()), win: '' }, true)} /></label><datalist id="centres"><option value="0" /><option value="180" /></datalist>`}
      <span class="buttons"><button onClick=${() => save(saved)}>Save PNG</button>${['npy', whole >= 0 ? '' : 'csv', 'parquet'].filter(Boolean).map((f) => html`<button title=${`Save the values that are seen as .${f}, all of them`} onClick=${() => save(values(f))}>${f}</button>`)}</span></fieldset>
    ${channels && html`<fieldset class="controls"><legend class="hidden">Channels</legend>${channels.all.map((c, i) => html`<label><input type="checkbox" checked=${chosen.includes(i)} onChange=${(/** @type {any} */ e) =>
      go({ ch: (e.target.checked ? [...chosen, i].sort((a, b) => a - b) : chosen.filter((k) => k !== i)).join() || 'none' }, true)} /> <span class="swatch" style=${{ background: '#' + c.colour }} />${c.label} ${c.lo !== '' && html`<span class="dim small">${c.lo} to ${c.hi}</span>`}</label>`)}</fieldset>`}
    ${labels && labels.names.length > 0 && html`<fieldset class="controls"><legend class="hidden">Labels</legend><label>Labels <select value=${state.label || ''} onChange=${(/** @type {any} */ e) => go({ label: e.target.value }, true)}>
      <option value="">none</option>${labels.names.map((n) => html`<option value=${n} selected=${n === state.label}>${n}</option>`)}</select></label>
      ${label && html`<label>opacity <input type="range" min="0" max="1" step="0.05" value=${opacity} onInput=${(/** @type {any} */ e) => go({ opacity: e.target.value === '0.5' ? '' : e.target.value }, true)} /></label>`}
      ${labels.chosen && !label && html`<span class="dim small">The labels have other axes than the picture.</span>`}</fieldset>`}
    ${rest.map((d) => html`<${Slider} key=${d} axis=${axes[d]} at=${plane.at[d]} set=${set(d)} drawn=${drawn?.index[d]} label=${drawn?.at?.[d]} film=${() => save(film(d))}
      find=${(/** @type {string} */ s) => get('index', { db, rev: commit, path, axis: d, text: s })} />`)}
    ${failed && html`<${Failure} error=${failed} what="The file is not saved" />`}
    ${seen.error ? html`<${Failure} error=${seen.error} />` : ''}
    <div class=${below ? 'picture below' : 'picture'}>
      <${Plane} most=${below ? 0.47 : 0.62} shown=${seen} map=${map} yAxis=${yAxis} xAxis=${xAxis} up=${up} view=${view} name=${`Picture of ${path}`}
        setView=${(/** @type {any} */ v) => go({ win: viewText(v, rows, cols) }, true)} onSize=${(/** @type {number} */ w, /** @type {number} */ h) => setSize([w, h])}
        onPoint=${setPointer} onPick=${pick} coast=${coast || []} opacity=${opacity}
        marks=${points.map((q, i) => ({ y: onMap(plane.y, q[plane.y]), x: onMap(plane.x, q[plane.x]), colour: seriesColour(i) }))} />
      <div class="beside">
        <p class="readout" aria-live="polite">${where ? html`<strong>${at ? [said(), ...at.more].join(' · ') : '…'}</strong>${' '}<br />
          ${at?.at ? at.at[plane.y] : yAxis.full(pointer?.y ?? 0)} · ${at?.at ? at.at[plane.x] : xAxis.full(pointer?.x ?? 0)}${' '}<br /><span class="dim">element ${where.join(', ')}</span>` : html`<span class="dim">Point for a value, click for a series. Drag to pan; turn the wheel, or press + and −, to zoom.</span>`}</p>
        ${!colour && !mixed && html`<${Bar} map=${map} win=${drawn} units=${units} />
        <${Colours} all=${all || []} state=${state} win=${drawn} ratios=${true} />`}
        <p class="dim small" role="status">${drawn && (drawn.full
          ? drawn.level ? `Resolution ${drawn.level + 1} of ${resolutions.length} is drawn; zoom in for finer ones.` : drawn.y.skip * drawn.x.skip > 1 ? `One of ${drawn.y.skip} × ${drawn.x.skip} elements is drawn; zoom in for all.` : 'Every element is drawn.'
          : `A first look from ${text.count(drawn.chunks, 'chunk')}; more is being read.`)}</p>
      </div>
    </div>
    ${points.length > 0 && html`<${Series} shown=${shown} info=${info} axes=${axes} parts=${parts} along=${along} points=${points} raw=${plane.raw} />`}
    <${Commands} shown=${shown} path=${path} select=${selection(plane, part, info.shape, whole)} raw=${plane.raw} attributes=${info.attributes} />`;
}
