// Requests to the server that serves the page. All are GET requests below one base, so that
// a secret or a prefix of a proxy in the path of the page stays in the path of requests.

/** @type {URL} */
const base = new URL('../', location.origin + location.pathname);

/** An answer of the server that is an error. */
export class ApiError extends Error {
  /** @param {string} text @param {number} status */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** @typedef {Record<string, string | number | undefined | null | boolean | string[]>} Params */

/**
 * The address of a report or of decoded elements.
 * @param {string} kind @param {Params} params
 */
export function url(kind, params) {
  const u = new URL('api/' + kind, base);
  for (const [key, value] of Object.entries(params)) {
    for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined && v !== null && v !== false) u.searchParams.append(key, String(v));
  }
  return u;
}

/**
 * The address of a stored value.
 * @param {string} db @param {string} rev @param {string} key
 */
export function valueURL(db, rev, key) {
  const path = [db, 'v', (rev || 'main').replaceAll('/', ':'), ...key.split('/')].map(encodeURIComponent).join('/');
  return new URL('../' + path, base);
}

/**
 * @param {URL} u @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
async function request(u, signal) {
  let response;
  try {
    response = await fetch(u, { signal, headers: { Accept: 'application/json' } });
  } catch (err) {
    if (signal && signal.aborted) throw err;
    throw new ApiError('The server does not answer. Has it ended?', 0);
  }
  if (response.ok) return response;
  let text = response.statusText;
  try {
    text = (await response.json()).error || text;
  } catch { /* the body is no JSON */ }
  throw new ApiError(text, response.status);
}

/**
 * A report, or decoded elements, as JSON.
 * @param {string} kind @param {Params} params @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(kind, params, signal) {
  const body = await (await request(url(kind, params), signal)).text();
  return kind === 'read' || kind === 'info' || kind === 'start' ? JSON.parse(body, exact) : JSON.parse(body);
}

/**
 * Keeps the digits of integers that a number of JavaScript would round: they become texts.
 * @type {any}
 */
const exact = (/** @type {string} */ _, /** @type {any} */ v, /** @type {any} */ context) => (typeof v === 'number' && Math.abs(v) > Number.MAX_SAFE_INTEGER && /^-?\d+$/.test(context?.source) ? context.source : v);

/**
 * Bytes with their header.
 * @param {string} kind @param {Params} params @param {AbortSignal} [signal]
 */
export async function getBytes(kind, params, signal) {
  const response = await request(url(kind, params), signal);
  return { head: response.headers, bytes: await response.arrayBuffer() };
}

/**
 * A stored value as text, "" if there is none.
 * @param {string} db @param {string} rev @param {string} key @param {AbortSignal} [signal]
 */
export async function getText(db, rev, key, signal) {
  try {
    return await (await request(valueURL(db, rev, key), signal)).text();
  } catch (err) {
    if (err instanceof ApiError && err.status === 404) return '';
    throw err;
  }
}

/** @type {Map<string, Promise<any>>} */
const kept = new Map();

/**
 * get for what does not change: a version by its full commit id. The last answers are kept.
 * @param {string} kind @param {Params} params
 */
export function getOnce(kind, params) {
  const key = url(kind, params).href;
  let answer = kept.get(key);
  if (!answer) {
    answer = get(kind, params);
    kept.set(key, answer);
    answer.catch(() => kept.delete(key));
    if (kept.size > 200) kept.delete(/** @type {string} */ (kept.keys().next().value));
  }
  return answer;
}

/** Keeps what another answer had of an answer to getOnce. @param {string} kind @param {Params} params @param {any} answer */
export const keep = (kind, params, answer) => void kept.set(url(kind, params).href, Promise.resolve(answer));

/** @param {unknown} err whether a request was cancelled, which is no failure */
export const cancelled = (err) => err instanceof DOMException && err.name === 'AbortError';
