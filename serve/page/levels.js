// Pyramids: the arrays of a group that hold one picture at several resolutions. The server says which nodes
// are levels: arrays, or for GeoZarr groups in which an array of one name is the picture.
import { get, getOnce } from './api.js';
import { readWindow } from './plane.js';

/**
 * The levels that are arrays with as many axes, the finest first. variables are the names that the
 * groups of levels have for arrays, of which the wanted one, or else the first one, is taken.
 * @param {import('./main.js').Shown} shown @param {any} info @param {string} [wanted]
 * @returns {Promise<{ all: any[], variables: string[], variable: string }>}
 */
export async function levels(shown, info, wanted) {
  const load = (/** @type {string} */ path) => getOnce('info', { db: shown.db, rev: shown.commit, path }).catch(() => null); // a level may be missing
  let nodes = (await Promise.all(info.levels.map(load))).filter(Boolean);
  const groups = nodes.filter((n) => n.node_type === 'group');
  /** @type {string[]} */
  let variables = [], variable = '';
  if (groups.length) {
    const members = await Promise.all(groups.map((g) => get('ls', { db: shown.db, rev: shown.commit, path: g.path }).catch(() => [])));
    variables = [...new Set(members.flat().filter((n) => n.node_type === 'array' && n.shape?.length >= 2).map((n) => n.path.split('/').pop()))];
    variable = wanted && variables.includes(wanted) ? wanted : variables[0];
    const found = await Promise.all(groups.map((g, i) => (members[i].some((/** @type {any} */ n) => n.path === [g.path, variable].join('/')) ? load([g.path, variable].join('/')) : null)));
    nodes = [...nodes, ...found];
  }
  const size = (/** @type {any} */ a) => a.shape.reduce((/** @type {number} */ n, /** @type {number} */ m) => n * m, 1);
  const arrays = nodes.filter((a) => a && a.node_type === 'array' && !a.shape.includes(0)).sort((a, b) => size(b) - size(a));
  return { all: arrays.filter((a) => a.shape.length === arrays[0].shape.length), variables, variable };
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
  const see = { of: all[0].path, ysee: [view.y0, view.y1], xsee: [view.x0, view.x1] };
  const w = await readWindow(shown, shown.commit, all[i].path, { ...plane, at }, { y0: view.y0 * ry, y1: view.y1 * ry, x0: view.x0 * rx, x1: view.x1 * rx }, { ...o, see }, signal);
  return { ...w, level: i, y: { ...w.y, start: w.y.start / ry, step: w.y.step / ry }, x: { ...w.x, start: w.x.start / rx, step: w.x.step / rx } };
}

/** @typedef {{ name: string, all: any[], dims: string[] }} Label an image of identifiers: its levels, the finest first, and the names of its axes */

/**
 * The element of a label at an element of its image, of which it may have fewer axes and elements.
 * @param {Label} label @param {string[]} dims of the image @param {number[]} shape of the image @param {number[]} index
 */
export function labelIndex(label, dims, shape, index) {
  return label.dims.map((name, d) => {
    const i = dims.indexOf(name), n = label.all[0].shape[d];
    return i < 0 || !Number.isFinite(index[i]) ? 0 : Math.min(n - 1, Math.floor(index[i] * n / shape[i]));
  });
}

/**
 * Reads the colours of a label. Places of the window are in elements of the image.
 * @param {import('./main.js').Shown} shown @param {Label} label @param {string[]} dims @param {number[]} shape @param {any} plane
 * @param {import('./plane.js').View} view @param {any} o @param {AbortSignal} signal
 */
export async function readLabel(shown, label, dims, shape, plane, view, o, signal) {
  const y = label.dims.indexOf(dims[plane.y]), x = label.dims.indexOf(dims[plane.x]), of = label.all[0].shape;
  const ry = of[y] / shape[plane.y], rx = of[x] / shape[plane.x];
  const w = await readLevel(shown, label.all, { y, x, at: labelIndex(label, dims, shape, plane.at), raw: true }, { y0: view.y0 * ry, y1: view.y1 * ry, x0: view.x0 * rx, x1: view.x1 * rx },
    { width: o.width, height: o.height, chunks: o.chunks, as: 'labels' }, signal);
  return { ...w, y: { ...w.y, start: w.y.start / ry, step: w.y.step / ry }, x: { ...w.x, start: w.x.start / rx, step: w.x.step / rx } };
}
