// Small parts that several views use.
import { html, useEffect, useRef, useState } from './lib/preact-htm.js';
import { cancelled } from './api.js';

/** @param {{ error: any, what?: string }} p */
export function Failure({ error, what }) {
  if (cancelled(error)) return null;
  const title = { 401: 'A key is needed', 403: 'Not allowed', 404: 'Not found', 501: 'Not available' }[/** @type {404} */ (error.status)] || 'This failed';
  return html`<div class="failure" role="alert"><strong>${title}${what ? `: ${what}` : ''}</strong><p>${error.message || String(error)}</p></div>`;
}

/** Appears only when something takes a while. */
export function Loading() {
  const [late, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), 250);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class="loading" role="status">${late && 'Loading…'}</p>`;
}

/** A text to copy. @param {{ label: string, text: string }} p */
export function Copy({ label, text }) {
  const [done, set] = useState(false);
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // not a secure context
      box.current?.select();
      document.execCommand('copy');
    }
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<div class="copy"><span>${label}</span><textarea ref=${box} readonly rows=${text.split('\n').length} value=${text} aria-label=${label} spellcheck=${false} />
    <button onClick=${copy}>${done ? 'Copied' : 'Copy'}</button></div>`;
}

/**
 * The size of an element, as it changes.
 * @returns {[any, number]}
 */
export function useWidth() {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, set] = useState(0);
  useEffect(() => {
    if (!ref.current) return;
    const watch = new ResizeObserver((entries) => set(Math.floor(entries[0].contentRect.width)));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}
