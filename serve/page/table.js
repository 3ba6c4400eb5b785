// Arrays of a group that share one axis, as a table: a column for each, the rows in sight only.
import { html, useMemo, useState } from './lib/preact-htm.js';
import { get, url } from './api.js';
import { go, link, useLoad } from './state.js';
import * as text from './text.js';
import { axisNames } from './info.js';
import { Failure, Loading } from './parts.js';

const order = new Intl.Collator('en', { numeric: true });

/** Rows and columns in sight, and cells of a file that the page makes. */
const mostRows = 100, mostColumns = 16, mostCells = 2_000_000;

/**
 * The tables of a group: arrays of one axis of the same name and length, the coordinate of the axis first.
 * @param {any[]} members
 * @returns {{ dim: string, length: number, columns: any[] }[]} the one with the most columns first
 */
export function tablesOf(members) {
  /** @type {Map<string, { dim: string, length: number, columns: any[] }>} */
  const all = new Map();
  for (const m of [...members].sort((a, b) => order.compare(a.path, b.path))) {
    if (m.node_type !== 'array' || m.error || m.shape?.length !== 1 || !m.shape[0]) continue;
    const dim = axisNames(m)[0], key = JSON.stringify([dim, m.shape[0]]);
    if (!all.has(key)) all.set(key, { dim, length: m.shape[0], columns: [] });
    all.get(key)?.columns.push(m);
  }
  const name = (/** @type {any} */ m) => m.path.split('/').pop();
  for (const t of all.values()) t.columns.sort((a, b) => Number(name(b) === t.dim) - Number(name(a) === t.dim));
  return [...all.values()].filter((t) => t.columns.length > 1).sort((a, b) => b.columns.length - a.columns.length);
}

/** A cell of a file: a spreadsheet must not take a text for a formula. @param {any} v */
function cell(v) {
  if (v === null || v === 'NaN' || v === 'NaT') return '';
  const s = typeof v === 'object' ? JSON.stringify(v) : String(v);
  if (typeof v === 'number' || /^-?\d[\d.e+T:-]*$/.test(s)) return s;
  return `"${s.replaceAll('"', '""').replace(/^[=+@\t\r-]/, "'$&")}"`;
}

/** @param {{ shown: import('./main.js').Shown, members: any[], path: string }} p */
export function Table({ shown, members, path }) {
  const { db, commit, state } = shown;
  const tables = useMemo(() => tablesOf(members), [members]);
  const key = (/** @type {any} */ t) => `${t.dim} ${t.length}`;
  const table = tables.find((t) => key(t) === state.dim) || tables[0];
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const n = table ? table.length : 0, count = table ? table.columns.length : 0;
  const whole = (/** @type {string} */ s, /** @type {number} */ most) => (/^\d+$/.test(s || '') ? Math.min(Number(s), most) : 0);
  const first = whole(state.row, Math.max(0, n - 1)), end = Math.min(n, first + mostRows), left = whole(state.col, Math.max(0, count - 1));
  const columns = table ? table.columns.slice(left, left + mostColumns) : [];
  const column = (/** @type {any} */ m, /** @type {number} */ a, /** @type {number} */ b, /** @type {AbortSignal} */ signal) =>
    get('read', { db, rev: commit, path: m.path, select: `${a}:${b}`, decode: text.isNumeric(m) ? 'cf' : false, times: 'text', format: 'json' }, signal);
  const { value, error } = useLoad((signal) => Promise.all(columns.map((m) => column(m, first, end, signal).catch((error) => ({ error })))), [db, commit, columns.map((m) => m.path), first, end]);
  if (!table) return html`<p>The group has no arrays that share one axis.</p>`;
  const name = (/** @type {any} */ m) => m.path.split('/').pop();
  const say = (/** @type {any} */ m, /** @type {any} */ c, /** @type {number} */ i) => (/^datetime64/.test(text.dtype(c.data_type)) && c.data[i] !== 'NaT' ? text.label(c.data[i]) : text.isNumeric(m) || typeof c.data[i] !== 'string' ? text.value(c.data[i]) : c.data[i]);
  const csv = async () => {
    if (n * count > mostCells) throw new Error(`The table has ${text.count(n * count, 'cell')}, more than a page can hold. Save columns, or use the command.`);
    const lines = [table.columns.map((m) => cell(name(m))).join()], step = Math.max(1, Math.floor(100_000 / count));
    for (let a = 0; a < n; a += step) {
      const part = await Promise.all(table.columns.map((m) => column(m, a, Math.min(n, a + step), new AbortController().signal)));
      for (let i = 0; i < part[0].data.length; i++) lines.push(part.map((c) => cell(c.data[i])).join());
    }
    text.save(`${path.replaceAll('/', '_') || db}.csv`, new Blob([lines.map((l) => l + '\n').join('')], { type: 'text/csv' }));
  };
  const move = (/** @type {number} */ row) => go({ row: row > 0 ? String(Math.min(row, n - 1)) : '' }, true);
  return html`<div class="title"><h1>/${path}</h1><span class="dim">${text.count(n, 'row')} along ${table.dim}, ${text.count(count, 'column')}</span></div>
    <div class="controls">
      ${tables.length > 1 && html`<label>Along <select value=${key(table)} onChange=${(/** @type {any} */ e) => go({ dim: e.target.value, row: '', col: '' })}>
        ${tables.map((t) => html`<option value=${key(t)} selected=${t === table}>${t.dim} (${t.length}), ${text.count(t.columns.length, 'column')}</option>`)}</select></label>`}
      <span class="buttons"><button onClick=${() => move(0)} disabled=${first === 0}>First</button><button onClick=${() => move(first - mostRows)} disabled=${first === 0}>Before</button><button
        onClick=${() => move(first + mostRows)} disabled=${end >= n}>Next</button><button onClick=${() => move(Math.max(0, n - mostRows))} disabled=${end >= n}>Last</button></span>
      <label>Row <input size="9" inputmode="numeric" value=${first} onChange=${(/** @type {any} */ e) => move(whole(e.target.value.trim(), n - 1))} /></label>
      <span class="dim">${first} to ${end - 1}</span>
      ${count > mostColumns && html`<span class="buttons"><button onClick=${() => go({ col: left > mostColumns ? String(left - mostColumns) : '' }, true)} disabled=${left === 0}>Columns before</button><button
        onClick=${() => go({ col: String(left + mostColumns) }, true)} disabled=${left + mostColumns >= count}>More columns</button></span><span class="dim">columns ${left + 1} to ${left + columns.length}</span>`}
      <button onClick=${() => csv().then(() => setFailed(null), setFailed)}>Save CSV</button>
    </div>
    ${failed && html`<${Failure} error=${failed} what="The table is not saved" />`}
    ${error ? html`<${Failure} error=${error} />` : !value ? html`<${Loading} />` : html`<div class="scroll"><table class="members values"><thead><tr><th scope="col">row</th>${columns.map((m) => html`<th scope="col" class=${text.isNumeric(m) ? 'num' : ''}><a
        href=${link({ path: m.path })} title=${m.attributes?.long_name ?? m.path}>${name(m)}</a> <span class="dim small">${/ since /.test(String(m.attributes?.units)) ? '' : m.attributes?.units ?? ''}</span></th>`)}</tr></thead>
      <tbody>${Array.from({ length: end - first }, (_, i) => html`<tr key=${first + i}><th scope="row" class="dim">${first + i}</th>${value.map((c, k) => html`<td class=${text.isNumeric(columns[k]) ? 'num' : ''}>${c.error ? (i ? '' : html`<span class="bad">${c.error.message}</span>`) : say(columns[k], c, i)}</td>`)}</tr>`)}</tbody>
      <tfoot><tr><th scope="row" class="dim">all rows</th>${columns.map((m) => html`<td class=${text.isNumeric(m) ? 'num' : ''}><a href=${url('read', { db, rev: commit, path: m.path, decode: text.isNumeric(m) ? 'cf' : false, format: 'parquet' }).href} download=${`${name(m)}.parquet`}>parquet</a>
        ${text.isNumeric(m) && html` <a href=${url('series', { db, rev: commit, path: m.path, decode: 'cf', format: 'csv', name: name(m) }).href} download=${`${name(m)}.csv`}>csv</a>`}</td>`)}</tr></tfoot></table></div>`}`;
}
