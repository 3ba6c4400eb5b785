// Metadata of an array or a group, as a person reads it.
import { html, useState } from './lib/preact-htm.js';
import { getOnce, getText, valueURL } from './api.js';
import { link, useLoad } from './state.js';
import * as text from './text.js';
import { Failure } from './parts.js';

const order = new Intl.Collator('en', { numeric: true });

/**
 * The number that xarray stores as base64 in the _FillValue of floats, else null.
 * @param {string} s
 */
function packed(s) {
  try {
    const b = Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
    return b.length === 8 ? new DataView(b.buffer).getFloat64(0, true) : null;
  } catch {
    return null;
  }
}

/** @param {{ name: string, value: any, info: any }} p an attribute */
function Value({ name, value, info }) {
  if (name === '_FillValue' && typeof value === 'string' && /float/.test(text.dtype(info.data_type)) && packed(value) !== null) return html`${String(packed(value))} <span class="dim">stored as ${value}</span>`;
  if (typeof value === 'string') return /\n/.test(value) || value.length > 200 ? html`<pre>${value}</pre>` : value;
  if (Array.isArray(value) && value.every((v) => typeof v !== 'object')) return value.join(', ');
  if (value && typeof value === 'object') return html`<pre>${JSON.stringify(value, null, 2)}</pre>`;
  return String(value);
}

/** @param {any} info chunks along each axis, if all have one length */
export function chunkShape(info) {
  return Array.isArray(info.chunk_shape) && info.chunk_shape.every((/** @type {any} */ n) => typeof n === 'number') ? info.chunk_shape : null;
}

/** Names of the axes. @param {any} info @returns {string[]} */
export function axisNames(info) {
  const old = info.attributes?._ARRAY_DIMENSIONS;
  return (info.shape || []).map((/** @type {number} */ _, /** @type {number} */ i) => (info.dimension_names && info.dimension_names[i]) || (Array.isArray(old) && old[i]) || `axis ${i}`);
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string }} p */
export function Info({ shown, info, path }) {
  const { db, commit } = shown;
  const isArray = info.node_type === 'array';
  const [raw, setRaw] = useState(false);
  const names = info.zarr_format === 3 ? ['zarr.json'] : ['.zarray', '.zgroup', '.zattrs'];
  const keys = names.map((n) => (path ? path + '/' + n : n));
  const docs = useLoad(async (signal) => (raw ? Promise.all(keys.map(async (key) => ({ key, body: await getText(db, commit, key, signal) }))) : []), [raw, db, commit, path]);
  const members = useLoad(() => (isArray ? Promise.resolve([]) : getOnce('ls', { db, rev: commit, path })), [db, commit, path]);
  const total = isArray ? info.shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1) : 0;
  const item = text.itemSize(info.data_type);
  const chunks = isArray && chunkShape(info);
  const grid = chunks && info.shape.map((/** @type {number} */ n, /** @type {number} */ i) => Math.ceil(n / chunks[i]));
  const a = info.attributes || {};
  const attributes = Object.entries(a);
  const dims = axisNames(info);
  return html`
    ${typeof a.long_name === 'string' || typeof a.title === 'string' ? html`<h1>${a.long_name || a.title}</h1>` : html`<h1>/${path}</h1>`}
    ${info.error && html`<${Failure} error=${{ message: info.error }} what=${isArray ? 'Values cannot be read' : 'The picture cannot be shown'} />`}
    <dl>
      <dt>Kind</dt><dd>${isArray ? 'array' : 'group'}, Zarr format ${info.zarr_format}</dd>
      ${isArray && html`
        <dt>Shape</dt><dd>${info.shape.length ? info.shape.map((/** @type {number} */ n, /** @type {number} */ i) => html`${i > 0 && ' × '}<span title=${dims[i]}>${n.toLocaleString('en')} <span class="dim">${dims[i]}</span></span>`) : 'one value'}</dd>
        <dt>Data type</dt><dd>${text.dtype(info.data_type)}${a.units !== undefined && html` in ${String(a.units)}`}</dd>
        <dt>Elements</dt><dd>${text.count(total, 'element')}${item ? `, ${text.size(total * item)} decoded` : ''}</dd>
        <dt>Chunks</dt><dd>${chunks ? html`${chunks.join(' × ')}, ${text.count(grid.reduce((/** @type {number} */ x, /** @type {number} */ y) => x * y, 1), 'chunk')} in a grid of ${grid.join(' × ')}${item ? `, ${text.size(chunks.reduce((/** @type {number} */ x, /** @type {number} */ y) => x * y, item))} each` : ''}` : JSON.stringify(info.chunk_shape)}</dd>
        <dt>Stored as</dt><dd>${text.codecs(info.codecs)}</dd>
        <dt>Fill value</dt><dd>${typeof info.fill_value === 'string' ? info.fill_value : JSON.stringify(info.fill_value)}</dd>`}
    </dl>
    <h2>Attributes</h2>
    ${attributes.length ? html`<table class="attributes"><tbody>${attributes.map(([k, v]) => html`<tr><th scope="row">${k}</th><td><${Value} name=${k} value=${v} info=${info} /></td></tr>`)}</tbody></table>` : html`<p class="dim">None</p>`}
    ${!isArray && html`<h2>Members</h2>${members.error ? html`<${Failure} error=${members.error} />` : members.value && html`
      <table class="members"><thead><tr><th>Name</th><th>Shape</th><th>Type</th><th class="wide">Description</th></tr></thead><tbody>${[...members.value].sort((a, b) => order.compare(a.path, b.path)).slice(0, 500).map((/** @type {any} */ m) => html`
      <tr><td><a href=${link({ path: m.path })}>${m.path.split('/').pop()}${m.node_type === 'group' ? '/' : ''}</a></td><td>${(m.shape || []).join(' × ')}</td>
      <td>${m.error ? html`<span class="bad">${m.error}</span>` : text.dtype(m.data_type)}</td>
      <td class="wide">${['long_name', 'title', 'description'].map((k) => m.attributes?.[k]).find((v) => typeof v === 'string') || ''}${typeof m.attributes?.units === 'string' ? html` <span class="dim">${m.attributes.units}</span>` : ''}</td></tr>`)}</tbody></table>
      ${members.value.length > 500 && html`<p class="dim">and ${members.value.length - 500} more, in the tree</p>`}`}`}
    <h2>Document</h2>
    <button aria-expanded=${raw} onClick=${() => setRaw(!raw)}>${raw ? 'Hide' : 'Show'} as it is stored</button>
    ${docs.error && html`<${Failure} error=${docs.error} />`}
    ${raw && docs.value && docs.value.filter((d) => d.body).map((d) => html`<p><a href=${valueURL(db, commit, d.key).href}>${d.key}</a></p><pre class="document">${pretty(d.body)}</pre>`)}`;
}

/** @param {string} body */
function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
