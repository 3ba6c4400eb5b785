// Sizes of the database, its caches, open sessions, and what a collection would free.
import { html, useState } from './lib/preact-htm.js';
import { get } from './api.js';
import { useLoad } from './state.js';
import * as text from './text.js';
import { Copy, Failure, Loading } from './parts.js';

/** @param {{ shown: import('./main.js').Shown }} p */
export function Care({ shown }) {
  const { db, commit } = shown;
  const stats = useLoad((signal) => get('stats', { db, rev: commit }, signal), [db, commit]);
  const sessions = useLoad((signal) => get('sessions', { db }, signal), [db]);
  const s = stats.value;
  return html`<h1>Care</h1>
    ${stats.error ? html`<${Failure} error=${stats.error} />` : !s ? html`<${Loading} />` : html`
    <h2>This version</h2><dl>
      <dt>Nodes</dt><dd>${text.count(s.arrays, 'array')}, ${text.count(s.groups, 'group')}${s.unreadable ? `, ${s.unreadable} not readable` : ''}</dd>
      <dt>Values</dt><dd>${text.count(s.keys, 'key')}: ${s.native.toLocaleString('en')} stored, ${s.inline.toLocaleString('en')} small ones in pages, ${s.virtual.toLocaleString('en')} in other files</dd>
      <dt>Size</dt><dd>${text.size(s.bytes)}</dd></dl>
    <h2>The database</h2><dl>
      <dt>On disk</dt><dd>${text.size(s.disk_bytes)}</dd>
      <dt>Payloads</dt><dd>${text.size(s.pack_bytes)} in ${text.count(s.packs, 'file')}</dd>
      <dt>Index</dt><dd>${text.size(s.index_bytes)}</dd>
      <dt>Checkpoints</dt><dd>${text.size(s.checkpoint_bytes)}</dd>
      <dt>History</dt><dd>${text.count(s.commits, 'commit')}, ${text.count(s.branches, 'branch', 'branches')}, ${text.count(s.tags, 'tag')}, ${text.count(s.sessions, 'stored session')}</dd></dl>`}
    ${s && html`<h2>Memory of this program</h2><dl>
      <dt>Chunks found in the cache</dt><dd>${s.cache.hits + s.cache.misses ? html`${(100 * s.cache.hits / (s.cache.hits + s.cache.misses)).toFixed(1)} % of ${text.count(s.cache.hits + s.cache.misses, 'look-up')}` : 'none was looked up yet'}</dd>
      <dt>Chunks in the cache</dt><dd>${text.size(s.cache.bytes)} of ${text.size(s.cache.limit_bytes)}</dd>
      <dt>Memory</dt><dd>${text.size(s.memory.used_bytes)} of ${text.size(s.memory.limit_bytes)}, for all databases</dd>
      <dt>Connected programs</dt><dd>${s.memory.processes > 1 ? text.count(s.memory.processes - 1, 'other') : 'none'} <span class="dim">with caches of their own</span></dd></dl>
      ${(s.care_errors || []).map((/** @type {string} */ e) => html`<${Failure} error=${{ message: e }} what="Background work failed" />`)}`}
    <h2>What a collection would free</h2><${Garbage} key=${db} db=${db} />
    <h2>Open sessions</h2>
    ${sessions.error ? html`<p class="dim">${sessions.error.message}</p>` : sessions.value && (sessions.value.length ? html`<table class="members"><thead><tr><th>Session</th><th>Branch</th><th>Label</th><th>Begun</th></tr></thead><tbody>
      ${sessions.value.map((/** @type {any} */ x) => html`<tr><td class="id">${x.id}</td><td>${x.branch}</td><td>${x.label}</td><td>${x.created ? text.ago(x.created) : ''}</td></tr>`)}</tbody></table>` : html`<p class="dim">None that you may see.</p>`)}
    <h2>Commands</h2>
    <${Copy} label="Free what nothing needs" text=${`zarrdb gc ${text.shell(db)}`} />
    <${Copy} label="Let old versions go first" text=${`zarrdb expire ${text.shell(db)} --older-than 30d`} />
    <${Copy} label="Verify everything" text=${`zarrdb fsck ${text.shell(db)} --full`} />
    <${Copy} label="Back up" text=${`zarrdb backup ${text.shell(db)} DEST`} />`;
}

/** What a collection would free, counted on demand: the whole index is read. @param {{ db: string }} p */
function Garbage({ db }) {
  const [asked, ask] = useState(0);
  const { value: g, error, loading } = useLoad((signal) => (asked ? get('garbage', { db }, signal) : Promise.resolve(null)), [db, asked]);
  return html`<p><button disabled=${!!asked && loading} onClick=${() => ask(asked + 1)}>${asked && loading ? 'Counting…' : 'Count'}</button> <span class="dim">This reads the index of all versions.</span></p>
    ${error && html`<p class="dim">${error.message}</p>`}
    ${g && html`<dl>
      <dt>Free</dt><dd>${text.size(g.freed_bytes)} of payloads, ${text.count(g.deleted_pages, 'page')} (${text.size(g.deleted_page_bytes)})</dd>
      ${g.held_bytes > 0 && html`<dt>Dead, kept for now</dt><dd>${text.size(g.held_bytes)}</dd>`}
      <dt>In use</dt><dd>${text.size(g.live_bytes)} of payloads</dd></dl>
      ${g.holders.length > 0 && html`<table class="members"><thead><tr><th>Held by</th><th>Versions</th><th>Held by nothing else</th></tr></thead><tbody>
        ${g.holders.slice(0, 500).map((/** @type {any} */ h) => html`<tr><td>${h.kind} ${h.name}</td><td>${h.versions.toLocaleString('en')}</td><td>${text.size(h.only_bytes)}</td></tr>`)}</tbody></table>`}`}`;
}
