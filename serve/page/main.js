// The frame of the page: what is served, as of when, the tree, and one view.
import { html, render, useEffect, useMemo, useState, useCallback } from './lib/preact-htm.js';
import { get, getOnce, keep } from './api.js';
import { go, link, useLoad, useLocation } from './state.js';
import * as text from './text.js';
import { Tree } from './tree.js';
import { Info } from './info.js';
import { Picture } from './picture.js';
import { fieldsOf, plateOf } from './plate.js';
import { Table, tablesOf } from './table.js';
import { History } from './history.js';
import { Compare } from './compare.js';
import { Care } from './care.js';
import { Failure, Loading } from './parts.js';

/**
 * What all views know.
 * @typedef {object} Shown
 * @property {string} db the served name
 * @property {string} rev as it was chosen, "" for main
 * @property {string} commit the full id, "" for what has no versions
 * @property {any} [head] the commit
 * @property {boolean} versions whether it is a database
 * @property {string} target what commands on this machine call it
 * @property {{name: string, commit: string}[]} branches
 * @property {{name: string, commit: string}[]} tags
 * @property {import('./state.js').State} state
 */

/**
 * What the page has to know before it draws, in one request. Answers to later requests are among it.
 * @param {string} db "" for the first one @param {string} rev @param {string} path @param {AbortSignal} signal
 * @returns {Promise<Omit<Shown, 'state'> & { names: string[] }>}
 */
async function open(db, rev, path, signal) {
  const s = await get('start', { db, rev, path }, signal), commit = s.head ? s.head.id : '';
  keep('colours', {}, s.colours);
  for (const [kind, all] of [['info', s.info], ['axes', s.axes]]) for (const [path, answer] of Object.entries(all)) keep(kind, { db: s.db, rev: commit, path }, answer);
  return { names: s.names, db: s.db, rev: s.versions ? rev : '', commit, head: s.head, versions: s.versions, target: s.target || s.db, branches: s.branches || [], tags: s.tags || [] };
}

/** How often the page looks whether a branch has moved. */
const pollEvery = 10_000;

/** @param {{ shown: Shown, reload: () => void }} p */
function Moved({ shown, reload }) {
  const [moved, set] = useState(false);
  const name = shown.rev || 'main';
  const branch = shown.branches.some((b) => b.name === name);
  useEffect(() => {
    set(false);
    if (!branch) return;
    const timer = setInterval(async () => {
      if (document.hidden) return;
      try {
        const now = (await get('branch', { db: shown.db })).find((/** @type {any} */ b) => b.name === name);
        set(!!now && now.commit !== shown.commit);
      } catch { /* the next request of a view says so */ }
    }, pollEvery);
    return () => clearInterval(timer);
  }, [shown.db, name, shown.commit, branch]);
  return moved && html`<div class="note" role="status">The branch ${name} has new commits. <button onClick=${reload}>Show the newest version</button></div>`;
}

/** @param {{ shown: Shown }} p */
function AsOf({ shown }) {
  const [typed, set] = useState(shown.rev);
  const [wrong, setWrong] = useState('');
  useEffect(() => { set(shown.rev); setWrong(''); }, [shown.rev, shown.db]);
  const choose = async (/** @type {string} */ rev) => {
    try {
      if (rev) await get('show', { db: shown.db, rev });
      setWrong('');
      go({ rev: rev === 'main' ? '' : rev });
    } catch (err) {
      setWrong(String(/** @type {Error} */ (err).message));
    }
  };
  return html`<form class="asof" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); choose(typed.trim()); }}>
    <label>As of <input list="revs" value=${typed} placeholder="main" size="14" spellcheck=${false} aria-invalid=${!!wrong}
      title="A branch, a tag, a commit, REV~N, or BRANCH@{time} such as main@{2 days ago}"
      onInput=${(/** @type {any} */ e) => set(e.target.value)} onChange=${(/** @type {any} */ e) => choose(e.target.value.trim())} /></label>
    <datalist id="revs">${[...shown.branches, ...shown.tags].map((r) => html`<option value=${r.name} />`)}</datalist>
    <a class="id" href=${link({ view: 'history', commit: shown.commit })} title=${shown.head.message}>${shown.commit.slice(0, 10)}</a>
    <span class="dim wide">${text.ago(shown.head.time)}</span>
    ${wrong && html`<span class="bad" role="alert">${wrong}</span>`}
  </form>`;
}

/** @type {Record<string, [string, any]>} */
const views = {
  data: ['Picture', Picture], table: ['Table', Table], info: ['Metadata', Info], history: ['History', History], compare: ['Compare', Compare], care: ['Care', Care],
};

/** @param {{ shown: Shown }} p */
function Node({ shown }) {
  const { db, commit, state } = shown;
  const path = state.path || '';
  const { value: info, error, loading } = useLoad(() => getOnce('info', { db, rev: commit, path }), [db, commit, path]);
  const isArray = info && info.node_type === 'array', pyramid = info?.levels?.length > 0 || !!(info && (plateOf(info.attributes) || fieldsOf(info.attributes)));
  const members = useLoad(() => (info && !isArray ? getOnce('ls', { db, rev: commit, path }).catch(() => []) : Promise.resolve([])), [db, commit, path, !!info]).value || [];
  const table = useMemo(() => tablesOf(members).length > 0, [members]);
  const tabs = Object.keys(views).filter((v) => (v === 'data' ? isArray || pyramid : v === 'table' ? table || state.view === v && info && !isArray : v === 'info' || shown.versions || v === 'care' && shown.versions));
  const ofNode = (/** @type {string} */ v) => v === 'data' || v === 'info' || v === 'table';
  const view = state.view && tabs.includes(state.view) ? state.view : loading && state.view === 'data' ? 'data' : isArray || pyramid ? 'data' : 'info';
  const View = views[view][1];
  const names = path.split('/').filter(Boolean);
  useEffect(() => { document.title = `${path || db} · zarrdb`; }, [path, db]);
  return html`<main id="main" tabindex="-1">
    <nav class="path" aria-label="Path"><a href=${link({ path: '' })}>${db}</a>${names.map((name, i) => html`<span aria-hidden="true"> / </span><a
      href=${link({ path: names.slice(0, i + 1).join('/') })}>${name}</a>`)}</nav>
    <div class="tabs" role="tablist" onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key], focus = /** @type {HTMLElement} */ (e.target).id.replace('tab-', '');
      const next = step ? tabs[(tabs.indexOf(view) + step + tabs.length) % tabs.length] : { Home: tabs[0], End: tabs[tabs.length - 1], ' ': focus }[e.key];
      if (!next) return;
      e.preventDefault();
      go({ view: next });
      requestAnimationFrame(() => document.getElementById('tab-' + next)?.focus());
    }}>${tabs.map((v) => html`<a role="tab" id=${'tab-' + v} href=${link({ view: v })} aria-selected=${v === view}
      tabindex=${v === view ? 0 : -1}>${views[v][0]}</a>`)}</div>
    <div role="tabpanel" aria-labelledby=${'tab-' + view} key=${view + ' ' + (ofNode(view) ? path : '')}>
      ${ofNode(view) && error ? html`<${Failure} error=${error} what=${'/' + path} />`
      : ofNode(view) && !info ? html`<${Loading} />`
      : html`<${View} shown=${shown} info=${info} path=${path} members=${members} />`}
    </div>
  </main>`;
}

/** The theme that was chosen, "" for that of the system. */
function Theme() {
  const [theme, set] = useState(() => {
    try {
      return localStorage.getItem('theme') || '';
    } catch { // the browser keeps nothing for this page
      return '';
    }
  });
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem('theme', theme);
    } catch { /* as above */ }
    dispatchEvent(new Event('themechange'));
  }, [theme]);
  return html`<label class="theme"><span class="hidden">Colours of the page</span><select value=${theme} onChange=${(/** @type {any} */ e) => set(e.target.value)}>
    <option value="">auto</option><option value="light">light</option><option value="dark">dark</option></select></label>`;
}

function App() {
  const state = useLocation();
  const [again, setAgain] = useState(0);
  const [drawer, setDrawer] = useState(false);
  const opened = useLoad((signal) => open(state.db || '', state.rev || '', state.path || '', signal), [state.db || '', state.rev || '', again]);
  const others = useLoad((signal) => (opened.error ? get('names', {}, signal) : Promise.resolve([])), [!!opened.error]);
  const [last, setLast] = useState(/** @type {any} */ (null)); // so that the frame stays while another version opens
  useEffect(() => { if (opened.value) setLast(opened.value); }, [opened.value]);
  useEffect(() => setDrawer(false), [state.path, state.view, state.db]);
  const reload = useCallback(() => setAgain((n) => n + 1), []);
  const ready = opened.value || (opened.loading && last && (!state.db || last.db === state.db) ? last : null);
  const names = (ready || last)?.names || others.value || [], db = ready?.db || state.db || '';
  const shown = ready && { ...ready, state };
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
    <header>
      <button class="menu" aria-label="Arrays and groups" aria-expanded=${drawer} onClick=${() => setDrawer(!drawer)}>☰</button>
      <span class="brand wide">zarrdb</span>
      ${names.length > 1 ? html`<label><span class="hidden">Database</span><select value=${db}
        onChange=${(/** @type {any} */ e) => go({ db: e.target.value, path: '', rev: '', view: '', commit: '', to: '' })}>
        ${names.map((/** @type {string} */ n) => html`<option value=${n} selected=${n === db}>${n}</option>`)}</select></label>` : html`<strong>${db}</strong>`}
      ${shown && shown.versions && html`<${AsOf} shown=${shown} />`}
      <span class="grow" /><${Theme} />
    </header>
    ${shown && shown.versions && html`<${Moved} shown=${shown} reload=${reload} />`}
    <div class="body">
      ${shown && html`<aside class=${drawer ? 'open' : ''}><${Tree} shown=${shown} key=${shown.db} /></aside>`}
      ${opened.error ? html`<main><${Failure} error=${opened.error} what=${state.rev ? `${db}@${state.rev}` : db} />
        ${state.rev && html`<p><a href=${link({ rev: '' })}>Show the branch main</a></p>`}</main>`
      : shown ? html`<${Node} shown=${shown} />` : html`<main><${Loading} /></main>`}
    </div>`;
}

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
