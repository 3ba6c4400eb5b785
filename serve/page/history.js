// Commits as a graph, with branches and tags, and what each of them changed.
import { html, useLayoutEffect, useMemo, useRef, useState } from './lib/preact-htm.js';
import { get, getOnce } from './api.js';
import { go, link, useLoad } from './state.js';
import * as text from './text.js';
import { Copy, Failure, Loading } from './parts.js';
import { Blame } from './blame.js';
import { Changes } from './compare.js';

const row = 44, mostGap = 16;

/**
 * Places commits, newest first, in columns: a commit stays in the column of its first child.
 * @param {{ id: string, parents: string[] }[]} commits
 */
export function layout(commits) {
  /** @type {(string | null)[]} */
  const lanes = [];
  const free = () => {
    const i = lanes.indexOf(null);
    return i < 0 ? lanes.push(null) - 1 : i;
  };
  const placed = commits.map((c) => {
    let lane = lanes.indexOf(c.id);
    const above = lane >= 0; // a child was placed
    if (!above) lane = free();
    const through = lanes.map((id, i) => (id && id !== c.id ? i : -1)).filter((i) => i >= 0);
    const joins = lanes.map((id, i) => (id === c.id && i !== lane ? i : -1)).filter((i) => i >= 0);
    lanes.forEach((id, i) => { if (id === c.id) lanes[i] = null; });
    /** @type {number[]} */
    const out = [];
    c.parents.forEach((p, k) => {
      let at = lanes.indexOf(p);
      if (at < 0) {
        at = k === 0 && lanes[lane] === null ? lane : free();
        lanes[at] = p;
      } else if (k === 0 && at > lane) { // the line of the first parent stays straight
        out.push(at);
        lanes[lane] = p;
        at = lane;
      }
      out.push(at);
    });
    return { id: c.id, lane, above, through, joins, out };
  });
  return { placed, width: Math.max(1, lanes.length) };
}

/** Where the list of commits was scrolled to, for the way back. @type {Map<string, number>} */
const scrolled = new Map();

/** @param {{ shown: import('./main.js').Shown, path: string, info: any }} p */
export function History({ shown, path, info }) {
  const { db, commit, state } = shown;
  const [count, setCount] = useState(200);
  const only = state.only === '1' && !!path, every = state.all === '1' && !only;
  const { value, error } = useLoad((signal) => get('log', { db, rev: commit, n: count, all: every && '1', path: only ? path : undefined }, signal), [db, commit, count, only && path, every]);
  const last = useRef(/** @type {any} */ ({})), of = JSON.stringify([db, commit, only && path, every]);
  if (value) last.current = { of, value };
  const log = value || (last.current.of === of ? last.current.value : null); // more of it is being read
  const list = useRef(/** @type {HTMLElement | null} */ (null)), box = () => (list.current && list.current.scrollHeight > list.current.clientHeight + 1 ? list.current : document.getElementById('main'));
  useLayoutEffect(() => {
    const b = box();
    if (!log || !b) return;
    b.scrollTop = scrolled.get(of) || 0;
    const keep = () => void scrolled.set(of, b.scrollTop);
    b.addEventListener('scroll', keep);
    return () => b.removeEventListener('scroll', keep);
  }, [of, !!log]);
  const chosen = state.commit || (log && log[0] && log[0].id) || '';
  const refs = useMemo(() => {
    /** @type {Record<string, { name: string, tag: boolean }[]>} */
    const at = {};
    for (const r of shown.branches) (at[r.commit] ||= []).push({ name: r.name, tag: false });
    for (const r of shown.tags) (at[r.commit] ||= []).push({ name: r.name, tag: true });
    return at;
  }, [shown.branches, shown.tags]);
  const graph = useMemo(() => (log && !only ? layout(log) : null), [log, only]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!log) return html`<${Loading} />`;
  const lanes = graph ? graph.width : 0;
  return html`<div class="history"><section aria-label="Commits">
    <div class="controls">
      <label>Branch or tag <select value=${shown.rev || 'main'} onChange=${(/** @type {any} */ e) => go({ rev: e.target.value === 'main' ? '' : e.target.value, commit: '' })}>
        ${[...new Set([...shown.branches, ...shown.tags].map((r) => r.name)).add(shown.rev || 'main')].map((r) => html`<option value=${r} selected=${r === (shown.rev || 'main')}>${r}</option>`)}</select></label>
      ${shown.branches.length > 1 && html`<label><input type="checkbox" checked=${every} disabled=${only} onChange=${(/** @type {any} */ e) => go({ all: e.target.checked ? '1' : '' })} /> all branches and tags</label>`}
      ${path && html`<label><input type="checkbox" checked=${only} onChange=${(/** @type {any} */ e) => go({ only: e.target.checked ? '1' : '' })} /> only commits that changed <code>${path}</code></label>`}
    </div>
    <ol class="log" ref=${list}>${log.map((/** @type {any} */ c, /** @type {number} */ i) => html`<li key=${c.id} class=${c.id === chosen ? 'chosen' : ''}>
      ${graph && html`<${Lines} at=${graph.placed[i]} lanes=${lanes} last=${i === log.length - 1} />`}
      <a class="entry" href=${link({ commit: c.id })} aria-current=${c.id === chosen}><span class="message">${c.message.split('\n')[0] || '(no message)'}
        ${(refs[c.id] || []).map((r) => html` <span class=${r.tag ? 'ref tag' : 'ref'}>${r.name}</span>`)}</span>
        <span class="dim small"><span class="id">${c.id.slice(0, 10)}</span> ${c.author} · <time datetime=${c.time} title=${c.time}>${text.ago(c.time)}</time>${c.parents.length > 1 ? ' · merge' : ''}</span></a></li>`)}</ol>
    ${log.length >= count && count < 20_000 && html`<button disabled=${!value} onClick=${() => setCount(count * 5)}>Show older commits</button>`}
    ${info && info.node_type === 'array' && html`<details class="commands" open=${state.blame === '1'} onToggle=${(/** @type {any} */ e) => go({ blame: e.target.open ? '1' : '' }, true)}><summary>Which commit wrote each chunk of ${path}</summary>${state.blame === '1' && html`<${Blame} shown=${shown} info=${info} />`}</details>`}
  </section>
  ${chosen && html`<${Commit} shown=${shown} id=${chosen} key=${chosen} />`}</div>`;
}

/** The part of the graph beside one commit. @param {{ at: any, lanes: number, last: boolean }} p */
function Lines({ at, lanes, last }) {
  const gap = Math.max(3, Math.min(mostGap, 240 / lanes)), x = (/** @type {number} */ lane) => 8 + lane * gap, mid = row / 2; // each lane has a place of its own
  const colour = (/** @type {number} */ lane) => `var(--lane${lane % 6})`;
  const curve = (/** @type {number} */ a, /** @type {number} */ y0, /** @type {number} */ b, /** @type {number} */ y1) => `M${a} ${y0}C${a} ${(y0 + y1) / 2} ${b} ${(y0 + y1) / 2} ${b} ${y1}`;
  return html`<svg width=${16 + lanes * gap} height=${row} aria-hidden="true">
    ${at.through.map((/** @type {number} */ l) => html`<path d=${`M${x(l)} 0V${row}`} stroke=${colour(l)} />`)}
    ${at.joins.map((/** @type {number} */ l) => html`<path d=${curve(x(l), 0, x(at.lane), mid)} stroke=${colour(l)} />`)}
    ${at.above && html`<path d=${`M${x(at.lane)} 0V${mid}`} stroke=${colour(at.lane)} />`}
    ${!last && at.out.map((/** @type {number} */ l) => html`<path d=${curve(x(at.lane), mid, x(l), row)} stroke=${colour(l)} />`)}
    <circle cx=${x(at.lane)} cy=${mid} r="4.5" fill=${colour(at.lane)} /></svg>`;
}

/** @param {{ shown: import('./main.js').Shown, id: string }} p */
function Commit({ shown, id }) {
  const { db, state } = shown;
  const { value: c, error } = useLoad(() => getOnce('show', { db, rev: id }), [db, id]);
  if (error) return html`<section class="commit"><${Failure} error=${error} /></section>`;
  if (!c) return html`<section class="commit"><${Loading} /></section>`;
  return html`<section class="commit" aria-label="Commit"><h2>${c.message || '(no message)'}</h2>
    <dl><dt>Commit</dt><dd class="id">${c.id}</dd><dt>Author</dt><dd>${c.author}</dd><dt>Time</dt><dd>${text.time(c.time)}, ${text.ago(c.time)}</dd>
      ${c.parents.length > 0 && html`<dt>${c.parents.length > 1 ? 'Parents' : 'Parent'}</dt><dd>${c.parents.map((/** @type {string} */ q) => html`<a class="id" href=${link({ commit: q })}>${q.slice(0, 10)}</a> `)}</dd>`}
      ${Object.entries(c.properties || {}).map(([k, v]) => html`<dt>${k}</dt><dd>${String(v)}</dd>`)}</dl>
    <p class="controls"><a class="button" href=${link({ rev: id, view: '' })}>Look at this version</a>
      ${c.parents.length > 0 && html`<a class="button" href=${link({ view: 'compare', from: c.parents[0], to: c.id })}>Compare with the version before</a>`}</p>
    ${c.parents.length > 0 ? html`<h3>What changed</h3><${Changes} shown=${shown} from=${c.parents[0]} to=${id} path=${state.only === '1' ? state.path : ''} />` : html`<p class="dim">The first commit.</p>`}
    <details class="commands"><summary>Commands</summary>
      <${Copy} label="Name this version" text=${`zarrdb tag ${text.shell(shown.target)} NAME ${id.slice(0, 10)}`} />
      <${Copy} label="Take this commit back, with a new commit" text=${`zarrdb revert ${text.shell(shown.target)} ${id.slice(0, 10)}`} />
      <${Copy} label="Move the branch here" text=${`zarrdb reset ${text.shell(shown.target)} ${id.slice(0, 10)}`} /></details>
  </section>`;
}
