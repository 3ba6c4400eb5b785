// The state of the page is in the fragment of its address, so that each view can be sent.
import { useEffect, useState } from './lib/preact-htm.js';

/** @typedef {Record<string, string>} State */

/** The fragment as it is shown; the browser's follows a moment later. */
let now = location.hash;
let timer = 0;

/** @returns {State} */
export function read() {
  return Object.fromEntries(new URLSearchParams(now.slice(1)));
}

/** @param {State} state without empty values */
function format(state) {
  const p = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== '' && value !== undefined) p.set(key, value);
  return '#' + p.toString().replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3A', ':');
}

/** Parts of the state that belong to an array. */
const ofArray = ['y', 'x', 'at', 'map', 'lo', 'hi', 'log', 'ch', 'win', 'pts', 'along', 'vars', 'label', 'opacity', 'raw', 'flip', 'centre', 'variable', 'dim', 'row', 'col'];

/**
 * The address of the state with some changes. A change of the node drops what belongs to the
 * array before.
 * @param {Record<string, string | undefined>} changes
 */
export function link(changes) {
  /** @type {any} */
  const next = { ...read(), ...changes };
  if ('path' in changes || 'db' in changes) {
    for (const key of ofArray) if (!(key in changes)) delete next[key];
  }
  return format(next);
}

/** @type {Set<() => void>} */
const listeners = new Set();
addEventListener('hashchange', () => {
  clearTimeout(timer);
  now = location.hash;
  listeners.forEach((f) => f());
});

/**
 * Changes the state. quiet replaces the entry of the browser's history, as for each step of
 * a slider.
 * @param {Record<string, string | undefined>} changes @param {boolean} [quiet]
 */
export function go(changes, quiet) {
  const to = link(changes);
  if (to === now) return;
  clearTimeout(timer);
  if (!quiet) {
    if (now !== location.hash) history.replaceState(null, '', now);
    location.hash = to; // the event comes later, maybe after the next change
    now = location.hash;
    listeners.forEach((f) => f());
    return;
  }
  now = to;
  listeners.forEach((f) => f());
  const was = location.hash; // unless the address was changed since
  timer = setTimeout(() => location.hash === was && history.replaceState(null, '', now), 200); // browsers refuse many in a short time
}

/** The state, for a component that shows it. */
export function useLocation() {
  const [state, set] = useState(read());
  useEffect(() => {
    const f = () => set(read());
    listeners.add(f);
    return () => void listeners.delete(f);
  }, []);
  return state;
}

/**
 * Loads something when a key changes. The load before is cancelled.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} fn @param {any[]} keys
 * @returns {{ value?: T, error?: any, loading: boolean }}
 */
export function useLoad(fn, keys) {
  const [state, set] = useState(/** @type {{value?: any, error?: any, loading: boolean, keys?: string}} */ ({ loading: true }));
  const want = JSON.stringify(keys);
  useEffect(() => {
    const stop = new AbortController();
    set((s) => ({ ...s, loading: true }));
    fn(stop.signal).then(
      (value) => stop.signal.aborted || set({ value, loading: false, keys: want }),
      (error) => stop.signal.aborted || set({ error, loading: false, keys: want }),
    );
    return () => stop.abort();
  }, [want]);
  return state.keys === want ? state : { loading: true };
}
