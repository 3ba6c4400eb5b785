// The coordinates of an array: the labels of its axes, and other arrays beside it that say
// where its elements lie.
import { get, getOnce } from './api.js';
import { axisNames } from './info.js';
import * as text from './text.js';

/** Longer coordinates are read one label at a time. */
const whole = 100_000;

/** Labels of one axis. */
export class Axis {
  /** @param {string} name @param {number} length @param {any} [info] of the coordinate @param {import('./main.js').Shown} [shown] */
  constructor(name, length, info, shown) {
    this.name = name;
    this.length = length;
    this.info = info;
    this.shown = shown;
    /** @type {any[] | null} */
    this.values = null;
    const units = info?.attributes?.units;
    this.times = false;
    this.units = typeof units === 'string' ? units : '';
  }

  async load() {
    if (!this.info || !this.shown || this.length > whole) return this;
    const r = await getOnce('read', { db: this.shown.db, rev: this.shown.commit, path: this.info.path, decode: 'cf', times: 'text', format: 'json' });
    this.values = r.data;
    this.times = /datetime64/.test(text.dtype(r.data_type)) && typeof r.data[0] === 'string';
    if (this.times || / since /.test(this.units)) this.units = '';
    return this;
  }

  /** A short text for an index. @param {number} i */
  label(i) {
    if (!this.values || i < 0 || i >= this.length) return String(i);
    return text.label(this.values[i]) + (this.units === 'degrees_north' || this.units === 'degrees_east' ? '°' : '');
  }

  /** Name and label. @param {number} i */
  full(i) {
    if (!this.values) return `${this.name} ${i}`;
    const unit = this.units && !/^degrees_|^1$/.test(this.units) ? ' ' + this.units : '';
    return `${this.name} ${this.label(i)}${unit}`;
  }

  /** The value as a number for a chart: seconds of a time, the index without labels. @param {number} i */
  position(i) {
    const v = this.values ? this.values[i] : i;
    if (typeof v === 'number') return v;
    return this.times ? Date.parse(/Z$|[+-]\d\d:\d\d$/.test(v) ? v : v + (v.includes('T') ? 'Z' : '')) / 1000 : i;
  }

  /** Whether indices have labels that are numbers which only ascend or descend. */
  get numeric() {
    return !!this.values && this.values.every((v) => typeof v === 'number');
  }
}

/**
 * The axes of an array, with labels where an array beside it has the name of the axis.
 * @param {import('./main.js').Shown} shown @param {any} info
 */
export async function axes(shown, info) {
  const group = info.path.split('/').slice(0, -1);
  return Promise.all(axisNames(info).map(async (name, i) => {
    const n = info.shape[i];
    const own = info.dimension_names?.[i] || info.attributes?._ARRAY_DIMENSIONS;
    if (!own || info.path === [...group, name].join('/') && info.shape.length > 1) return new Axis(name, n);
    try {
      const c = await getOnce('info', { db: shown.db, rev: shown.commit, path: [...group, name].join('/') });
      if (c.node_type !== 'array' || c.shape.length !== 1 || c.shape[0] !== n) return new Axis(name, n);
      return await new Axis(name, n, c, shown).load();
    } catch { // a missing or damaged coordinate is no reason not to show the values
      return new Axis(name, n);
    }
  }));
}

/**
 * The values of further coordinates at one element, such as latitudes of a curvilinear grid.
 * @param {import('./main.js').Shown} shown @param {any} info @param {number[]} at @param {AbortSignal} signal
 */
export async function further(shown, info, at, signal) {
  const names = typeof info.attributes?.coordinates === 'string' ? info.attributes.coordinates.split(/\s+/).slice(0, 6) : [];
  const group = info.path.split('/').slice(0, -1), dims = axisNames(info);
  const out = await Promise.all(names.map(async (/** @type {string} */ name) => {
    try {
      const path = [...group, name].join('/');
      const c = await getOnce('info', { db: shown.db, rev: shown.commit, path });
      const index = axisNames(c).map((d) => at[dims.indexOf(d)]);
      if (c.node_type !== 'array' || dims.includes(name) || index.some((i) => i === undefined)) return null;
      const r = await get('read', { db: shown.db, rev: shown.commit, path, select: index.join(','), decode: 'cf', times: 'text', format: 'json' }, signal);
      return `${name} ${text.label(r.data[0])}`;
    } catch {
      return null;
    }
  }));
  return out.filter(Boolean);
}
