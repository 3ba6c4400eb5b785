// The axes of an array: their labels, as the server prints them, and where their elements lie.
import { getOnce } from './api.js';

/** Labels of one axis. */
export class Axis {
  /** @param {{ name: string, title: string, length: number, up: boolean, labels?: string[], labelled?: boolean, edges?: number[], globe?: string, kind?: string, size?: number, unit?: string, round?: boolean, roll?: number }} a */
  constructor(a) {
    this.name = a.name;
    this.title = a.title;
    this.length = a.length;
    this.up = a.up;
    /** with units; null if there are none, or too many to have all at once */
    this.labels = a.labels || null;
    /** whether there are labels, also if they are too many */
    this.labelled = !!a.labelled;
    this.edges = a.edges || null;
    /** lat, lon or nothing */
    this.globe = a.globe || '';
    /** of distances: axes of several kinds have no proportions */
    this.kind = a.kind || '';
    /** of an element in an image, 0 if it is not known */
    this.size = a.size || 0;
    this.unit = a.unit || '';
    /** whether longitudes go around the globe, and the first element of a map with a centre */
    this.round = !!a.round;
    this.roll = a.roll || 0;
  }

  /** The axis as a map with the centre has it. */
  rolled() {
    if (!this.roll) return this;
    const labels = this.labels && [...this.labels.slice(this.roll), ...this.labels.slice(0, this.roll)];
    return new Axis({ ...this, labels: labels || undefined, edges: undefined });
  }

  /** The stored element of one on a map. @param {number} i */
  stored(i) {
    return (i + this.roll) % this.length;
  }

  /** Where a stored element is on a map. @param {number} i */
  onMap(i) {
    return (i - this.roll + this.length) % this.length;
  }

  /** The label of an index. @param {number} i */
  label(i) {
    return this.labels && i >= 0 && i < this.length ? this.labels[i] : String(i);
  }

  /** Name and label. @param {number} i */
  full(i) {
    return `${this.name} ${this.label(i)}`;
  }

  /** Where a place in elements is drawn, in mean elements: uneven elements have sizes of their own. @param {number} p */
  place(p) {
    const e = this.edges;
    if (!e) return p;
    const i = Math.min(this.length - 1, Math.max(0, Math.floor(p)));
    return e[i] + (p - i) * (e[i + 1] - e[i]);
  }

  /** The place in elements that is drawn there. @param {number} q */
  element(q) {
    const e = this.edges;
    if (!e) return q;
    let lo = 0, hi = this.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (e[mid] <= q) lo = mid;
      else hi = mid - 1;
    }
    return lo + (q - e[lo]) / (e[lo + 1] - e[lo]);
  }
}

/**
 * The axes of an array, and what its elements are made of.
 * @param {import('./main.js').Shown} shown @param {any} info @param {string} [centre] a longitude
 * @returns {Promise<{ axes: Axis[], parts: string[], colours: boolean }>}
 */
export async function axes(shown, info, centre) {
  const a = await getOnce('axes', { db: shown.db, rev: shown.commit, path: info.path, centre: centre || false });
  return { axes: a.axes.map((/** @type {any} */ x) => new Axis(x)), parts: a.parts || [], colours: a.colours };
}
