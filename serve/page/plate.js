// Plates and wells of OME-Zarr: a grid of small pictures, which the browser asks for when they come into sight.
import { html, useState } from './lib/preact-htm.js';
import { url } from './api.js';
import { link } from './state.js';
import * as text from './text.js';

/** Rows and columns that a grid has at most. */
const mostLines = 64;

/** @param {any} attributes of a group @param {string} name @returns {any} */
const member = (attributes, name) => attributes?.ome?.[name] ?? attributes?.[name];

/** @param {any} list @returns {string[]} the names of rows or columns */
const names = (list) => (Array.isArray(list) ? list.map((x) => String(x?.name ?? '')) : []);

/**
 * The rows, columns and wells of a plate, or null.
 * @param {any} attributes @returns {{ name: string, rows: string[], columns: string[], wells: Map<string, string> } | null} paths of wells by "row/column"
 */
export function plateOf(attributes) {
  const p = member(attributes, 'plate'), rows = names(p?.rows), columns = names(p?.columns);
  if (!rows.length || !columns.length || !Array.isArray(p.wells)) return null;
  const wells = new Map();
  for (const w of p.wells) if (typeof w?.path === 'string') wells.set(Number.isInteger(w.rowIndex) && Number.isInteger(w.columnIndex) ? `${rows[w.rowIndex]}/${columns[w.columnIndex]}` : w.path, w.path);
  return { name: typeof p.name === 'string' ? p.name : '', rows, columns, wells };
}

/** The paths of the fields of a well, or null. @param {any} attributes @returns {string[] | null} */
export function fieldsOf(attributes) {
  const images = member(attributes, 'well')?.images;
  const paths = Array.isArray(images) ? images.map((i) => i?.path).filter((p) => typeof p === 'string') : [];
  return paths.length ? paths : null;
}

/** A small picture that leads to its node. @param {{ shown: import('./main.js').Shown, path: string, name: string }} p */
function Thumb({ shown, path, name }) {
  const [missing, set] = useState(false);
  if (missing) return html`<span class="none" title=${`${name}: nothing can be shown of /${path}`}>missing</span>`;
  return html`<a href=${link({ path })} title=${name}><img loading="lazy" width="64" height="64" alt=${name} onError=${() => set(true)}
    src=${url('thumb', { db: shown.db, rev: shown.commit, path, width: Math.min(256, Math.ceil(64 * (devicePixelRatio || 1))) }).href} /></a>`;
}

/** @param {{ shown: import('./main.js').Shown, info: any, path: string }} p */
export function Plate({ shown, info, path }) {
  const p = plateOf(info.attributes);
  if (!p) return null;
  const rows = p.rows.slice(0, mostLines), columns = p.columns.slice(0, mostLines);
  return html`<div class="title"><h1>${p.name || '/' + path}</h1><span class="dim">${text.count(p.wells.size, 'well')} in ${p.rows.length} × ${p.columns.length}, the first field of each</span></div>
    <div class="scroll"><table class="plate"><thead><tr><td />${columns.map((c) => html`<th scope="col">${c}</th>`)}</tr></thead>
      <tbody>${rows.map((r) => html`<tr><th scope="row">${r}</th>${columns.map((c) => {
        const well = p.wells.get(`${r}/${c}`);
        return html`<td>${well ? html`<${Thumb} key=${shown.commit + well} shown=${shown} path=${[path, well].filter(Boolean).join('/')} name=${r + c} />` : html`<span class="none" title=${`${r}${c}: the plate has no such well`}>–</span>`}</td>`;
      })}</tr>`)}</tbody></table></div>
    ${(p.rows.length > mostLines || p.columns.length > mostLines) && html`<p class="dim">The first ${mostLines} rows and columns are shown; others are in the tree.</p>`}`;
}

/** @param {{ shown: import('./main.js').Shown, fields: string[], path: string }} p */
export function Well({ shown, fields, path }) {
  return html`<div class="title"><h1>/${path}</h1><span class="dim">${text.count(fields.length, 'field')}</span></div>
    <ul class="fields">${fields.slice(0, 400).map((f) => html`<li><${Thumb} key=${shown.commit + f} shown=${shown} path=${[path, f].join('/')} name=${`field ${f}`} /><span class="dim small">${f}</span></li>`)}</ul>
    ${fields.length > 400 && html`<p class="dim">and ${fields.length - 400} more, in the tree</p>`}`;
}
