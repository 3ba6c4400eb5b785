// Values to colours. The maps come from the server, which draws with them too.
import { getOnce } from './api.js';

/** @typedef {{ name: string, diverging: boolean, rgb: Uint8Array }} Map 256 colours */
/** @typedef {{ lo: number, hi: number }} Limits */

/** @returns {Promise<Map[]>} */
export async function maps() {
  return (await getOnce('colours', {})).map((/** @type {any} */ m) => ({
    name: m.name, diverging: m.diverging, rgb: Uint8Array.from(m.colours.match(/../g), (h) => parseInt(h, 16)),
  }));
}

/**
 * The values between which most lie: few outliers do not make all else one colour.
 * @param {ArrayLike<number>} values @param {number} low percent @param {number} high percent
 * @param {boolean} [each] look at each value
 * @returns {Limits | null} null if there is no finite value
 */
export function percentiles(values, low, high, each) {
  const step = each ? 1 : Math.max(1, Math.floor(values.length / 200_000)); // a sample is as good, and fast
  const v = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) v.push(values[i]);
  if (!v.length && step > 1) for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) v.push(values[i]);
  if (!v.length) return null;
  const sorted = Float64Array.from(v).sort();
  const at = (/** @type {number} */ p) => sorted[Math.round((p / 100) * (sorted.length - 1))];
  const l = { lo: at(low), hi: at(high) };
  return l.lo === l.hi ? { lo: sorted[0], hi: sorted[sorted.length - 1] } : l;
}

/** Limits of the same distance from 0. @param {Limits | null} l */
export function symmetric(l) {
  if (!l) return l;
  const m = Math.max(Math.abs(l.lo), Math.abs(l.hi));
  return { lo: -m, hi: m };
}

/**
 * @param {ArrayLike<number>} values @param {Limits} l @param {number} bins
 * @returns {number[]} counts
 */
export function histogram(values, l, bins) {
  const counts = new Array(bins).fill(0);
  const scale = l.hi > l.lo ? bins / (l.hi - l.lo) : 0;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v >= l.lo && v <= l.hi) counts[Math.min(bins - 1, Math.floor((v - l.lo) * scale))]++;
  }
  return counts;
}

/**
 * A picture with a pixel for each value; missing ones are transparent.
 * @param {ArrayLike<number>} values @param {number} width @param {number} height @param {Map} map @param {Limits} l
 */
export function paint(values, width, height, map, l) {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const img = new ImageData(width, height);
  const out = img.data, rgb = map.rgb, scale = l.hi > l.lo ? 255 / (l.hi - l.lo) : 0;
  for (let i = 0, k = 0; i < values.length; i++, k += 4) {
    const v = values[i];
    if (Number.isNaN(v)) continue;
    const c = 3 * (scale ? Math.min(255, Math.max(0, Math.round((v - l.lo) * scale))) : v > l.hi ? 255 : v < l.lo ? 0 : 128);
    out[k] = rgb[c];
    out[k + 1] = rgb[c + 1];
    out[k + 2] = rgb[c + 2];
    out[k + 3] = 255;
  }
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).putImageData(img, 0, 0);
  return canvas;
}

/**
 * Round numbers between two values, about n.
 * @param {number} lo @param {number} hi @param {number} n
 */
export function ticks(lo, hi, n) {
  if (!(hi > lo) || !Number.isFinite(hi - lo)) return [lo];
  const rough = (hi - lo) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || rough;
  const out = [];
  for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9 && out.length < 50; v += step) out.push(Math.abs(v) < step / 1e6 ? 0 : Number(v.toPrecision(12)));
  return out;
}
