// Sizes of the database, and open sessions.
import { html } from './lib/preact-htm.js';
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
    <h2>Open sessions</h2>
    ${sessions.error ? html`<p class="dim">${sessions.error.message}</p>` : sessions.value && (sessions.value.length ? html`<table class="members"><thead><tr><th>Session</th><th>Branch</th><th>Label</th><th>Begun</th></tr></thead><tbody>
      ${sessions.value.map((/** @type {any} */ x) => html`<tr><td class="id">${x.id}</td><td>${x.branch}</td><td>${x.label}</td><td>${x.created ? text.ago(x.created) : ''}</td></tr>`)}</tbody></table>` : html`<p class="dim">None that you may see.</p>`)}
    <h2>Commands</h2>
    <${Copy} label="What a collection would free" text=${`zarrdb gc ${text.shell(db)} --dry-run`} />
    <${Copy} label="Verify everything" text=${`zarrdb fsck ${text.shell(db)} --full`} />
    <${Copy} label="Back up" text=${`zarrdb backup ${text.shell(db)} DEST`} />`;
}
