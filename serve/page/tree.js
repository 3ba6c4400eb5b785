// The tree of groups and arrays. Members of a group are listed when it is opened; only the
// rows in sight are elements of the page.
import { html, useEffect, useMemo, useRef, useState } from './lib/preact-htm.js';
import { cancelled, get, getOnce } from './api.js';
import { go, link } from './state.js';
import * as text from './text.js';
import { Failure } from './parts.js';

const rowHeight = 26;

/** Names in their natural order: x2 before x10. */
const order = new Intl.Collator('en', { numeric: true });

/** @typedef {{ path: string, name: string, depth: number, array: boolean, node?: any, error?: any, open?: boolean, place?: number, of?: number }} Row */

/** @param {{ shown: import('./main.js').Shown }} p */
export function Tree({ shown }) {
  const { db, commit, state } = shown;
  const [open, setOpen] = useState(/** @type {Record<string, boolean>} */ ({ '': true }));
  const [members, setMembers] = useState(/** @type {Record<string, any>} */ ({}));
  const [filter, setFilter] = useState('');
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(800);
  const [focus, setFocus] = useState('');
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const path = state.path || '';

  useEffect(() => setMembers({}), [commit]);
  useEffect(() => { // open what is above the chosen node
    const above = { ...open };
    const names = path.split('/');
    for (let i = 1; i < names.length; i++) above[names.slice(0, i).join('/')] = true;
    setOpen(above);
    setFocus(path);
  }, [path]);
  useEffect(() => {
    for (const [group, is] of Object.entries(open)) {
      if (!is || members[group]) continue;
      setMembers((m) => ({ ...m, [group]: { loading: true } }));
      getOnce('ls', { db, rev: commit, path: group }).then(
        (list) => {
          list.sort((/** @type {any} */ a, /** @type {any} */ b) => order.compare(a.path, b.path));
          setMembers((m) => ({ ...m, [group]: { list } }));
          const groups = list.filter((/** @type {any} */ n) => n.node_type === 'group');
          if (group.split('/').length < 3 && groups.length <= 8 && list.length <= 100) { // small stores show all
            setOpen((o) => ({ ...Object.fromEntries(groups.map((/** @type {any} */ n) => [n.path, true])), ...o }));
          }
        },
        (error) => setMembers((m) => ({ ...m, [group]: { error } })),
      );
    }
  }, [open, members, db, commit]);

  useEffect(() => { // a filter looks through the whole store
    if (!filter) return setFound(null);
    const stop = new AbortController();
    const timer = setTimeout(() => get('find', { db, rev: commit, word: filter }, stop.signal).then(setFound, (error) => cancelled(error) || setFound({ error, nodes: [], count: 0 })), 150);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [filter, db, commit]);

  const [rows, unread] = useMemo(() => {
    /** @type {Row[]} */
    const rows = [{ path: '', name: db, depth: 0, array: false, open: true, place: 1, of: 1 }];
    let unread = false;
    const leaf = (/** @type {any} */ node) => node.path.split('/').pop();
    const add = (/** @type {string} */ group, /** @type {number} */ depth) => {
      const m = members[group];
      if (!m || !m.list) unread = true;
      if (m && m.error) rows.push({ path: group, name: '', depth, array: false, error: m.error });
      ((m && m.list) || []).forEach((/** @type {any} */ node, /** @type {number} */ i) => {
        const array = node.node_type === 'array';
        rows.push({ path: node.path, name: leaf(node), depth, array, node, open: !array && !!open[node.path], place: i + 1, of: m.list.length });
        if (array) return;
        if (open[node.path]) add(node.path, depth + 1);
        else unread = true;
      });
    };
    if (!found) {
      add('', 1);
      return [rows, unread];
    }
    if (found.error) rows.push({ path: '', name: '', depth: 1, array: false, error: found.error });
    const above = new Set(['']);
    for (const node of [...found.nodes].sort((a, b) => order.compare(a.path, b.path))) {
      const names = node.path.split('/');
      for (let i = 1; i < names.length; i++) {
        const group = names.slice(0, i).join('/');
        if (above.has(group)) continue;
        above.add(group);
        rows.push({ path: group, name: names[i - 1], depth: i, array: false, open: true });
      }
      rows.push({ path: node.path, name: names[names.length - 1], depth: names.length, array: true, node });
    }
    return [rows, false];
  }, [db, open, members, found]);

  useEffect(() => {
    if (!list.current) return;
    const watch = new ResizeObserver(() => list.current && setHeight(list.current.clientHeight));
    watch.observe(list.current);
    return () => watch.disconnect();
  }, []);
  const at = Math.max(0, rows.findIndex((r) => r.path === focus && !r.error));
  useEffect(() => { // keep the focus in sight
    const box = list.current;
    if (!box) return;
    const y = at * rowHeight;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = y + rowHeight - box.clientHeight;
  }, [at]);

  const toggle = (/** @type {string} */ p, /** @type {boolean} */ is) => setOpen((o) => ({ ...o, [p]: is }));
  const key = (/** @type {KeyboardEvent} */ e) => {
    const row = rows[at];
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length }[e.key];
    if (step) setFocus(rows[Math.min(rows.length - 1, Math.max(0, at + step))].path);
    else if (e.key === 'ArrowRight' && !row.array) toggle(row.path, true);
    else if (e.key === 'ArrowLeft') {
      if (!row.array && row.open && row.path) toggle(row.path, false);
      else setFocus(row.path.split('/').slice(0, -1).join('/'));
    } else if (e.key === 'Enter' || e.key === ' ') go({ path: row.path });
    else return;
    e.preventDefault();
  };
  const first = Math.max(0, Math.floor(top / rowHeight) - 5), last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 5);
  return html`
    <input class="filter" type="search" placeholder="Filter arrays" aria-label="Filter arrays" value=${filter} onInput=${(/** @type {any} */ e) => setFilter(e.target.value)} />
    <div class="tree" role="tree" tabindex="0" aria-label="Arrays and groups" ref=${list} aria-activedescendant=${'row-' + at}
      onKeyDown=${key} onScroll=${(/** @type {any} */ e) => setTop(e.target.scrollTop)}>
      <div style=${{ height: `${rows.length * rowHeight}px`, position: 'relative' }} role="presentation">
        ${rows.slice(first, last).map((row, i) => row.error
          ? html`<div class="row" key=${'e' + row.path} style=${{ top: `${(first + i) * rowHeight}px` }}><${Failure} error=${row.error} /></div>`
          : html`<div key=${row.path} id=${'row-' + (first + i)} role="treeitem" aria-level=${row.depth + 1} aria-selected=${row.path === path}
            aria-expanded=${row.array ? undefined : !!row.open} aria-setsize=${row.of} aria-posinset=${row.place}
            class=${`row${row.path === path ? ' chosen' : ''}${first + i === at ? ' focus' : ''}`} style=${{ top: `${(first + i) * rowHeight}px`, paddingLeft: `${row.depth * 14 + 4}px` }}>
            <span class="twist" aria-hidden="true" onClick=${() => row.path && !row.array && toggle(row.path, !row.open)}>${row.array ? '▦' : row.open ? '▾' : '▸'}</span>
            <a tabindex="-1" href=${link({ path: row.path })} title=${row.node?.error || row.path || db}>${row.name}</a>
            ${row.array && html`<span class="dim"> ${row.node.error ? 'not readable' : (row.node.shape || []).join(' × ') + ' ' + text.dtype(row.node.data_type)}</span>`}
          </div>`)}
      </div>
    </div>
    <p class="dim small" role="status">${filter ? (found ? text.count(found.count, 'array') + ' found' : 'searching…') : unread ? '' : text.count(rows.filter((r) => r.array).length, 'array')}</p>`;
}
