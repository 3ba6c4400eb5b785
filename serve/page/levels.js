// Pyramids of OME-Zarr: the arrays of a group that hold one picture at several resolutions.
import { getOnce } from './api.js';
import { readWindow } from './plane.js';

/** The paths of the levels below a group, the finest first. @param {any} info of a group @returns {string[]} */
export function levelPaths(info) {
  const scales = info?.node_type === 'group' && (info.attributes?.ome?.multiscales || info.attributes?.multiscales);
  const datasets = Array.isArray(scales) && scales[0]?.datasets;
  return Array.isArray(datasets) ? datasets.map((d) => d?.path).filter((p) => typeof p === 'string').slice(0, 32).map((p) => [info.path, p].filter(Boolean).join('/')) : [];
}

/** The levels that are arrays with the axes of the first. @param {import('./main.js').Shown} shown @param {any} info */
export async function levels(shown, info) {
  const all = await Promise.all(levelPaths(info).map((path) => getOnce('info', { db: shown.db, rev: shown.commit, path })));
  return all.filter((a) => a.node_type === 'array' && a.shape.length === all[0].shape.length && !a.shape.includes(0));
}

/**
 * Reads a window of the coarsest level that has an element for each pixel. Places of the window
 * are in elements of the finest level.
 * @param {import('./main.js').Shown} shown @param {any[]} all @param {any} plane
 * @param {import('./plane.js').View} view @param {any} o @param {AbortSignal} signal
 * @returns {Promise<import('./plane.js').Win & { level?: number }>}
 */
export async function readLevel(shown, all, plane, view, o, signal) {
  const shape = all[0].shape, { y, x } = plane;
  let i = all.length - 1;
  const enough = (/** @type {any} */ a) => (view.y1 - view.y0) * a.shape[y] / shape[y] >= Math.min(o.height, view.y1 - view.y0) && (view.x1 - view.x0) * a.shape[x] / shape[x] >= Math.min(o.width, view.x1 - view.x0);
  while (i > 0 && !enough(all[i])) i--;
  if (i <= 0) return readWindow(shown, shown.commit, all[0].path, plane, view, o, signal);
  const ry = all[i].shape[y] / shape[y], rx = all[i].shape[x] / shape[x];
  const at = plane.at.map((/** @type {number} */ k, /** @type {number} */ d) => Math.floor(k * all[i].shape[d] / shape[d]));
  const w = await readWindow(shown, shown.commit, all[i].path, { ...plane, at }, { y0: view.y0 * ry, y1: view.y1 * ry, x0: view.x0 * rx, x1: view.x1 * rx }, o, signal);
  return { ...w, level: i, y: { ...w.y, start: w.y.start / ry, step: w.y.step / ry }, x: { ...w.x, start: w.x.start / rx, step: w.x.step / rx } };
}
