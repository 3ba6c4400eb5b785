// Colours of pictures. The server says which colour each element has.
import { getOnce } from './api.js';

/** @typedef {{ name: string, diverging: boolean, rgb: Uint8Array }} Map 256 colours */
/** @typedef {{ lo: number, hi: number }} Limits */

/** @param {string} hex */
const bytes = (hex) => Uint8Array.from(hex.match(/../g) || [], (h) => parseInt(h, 16));

/** @returns {Promise<Map[]>} */
export async function maps() {
  return (await getOnce('colours', {})).map((/** @type {any} */ m) => ({ name: m.name, diverging: m.diverging, rgb: bytes(m.colours) }));
}

/**
 * The map of a name; with "_r" behind it, turned around.
 * @param {Map[]} all @param {string | undefined} name
 */
export function mapOf(all, name) {
  const base = (name || '').replace(/_r$/, ''), m = all.find((m) => m.name === base) || all[0];
  if (base === (name || '')) return m;
  const rgb = m.rgb.slice();
  for (let i = 0; i < 256; i++) for (let k = 0; k < 3; k++) rgb[3 * i + k] = m.rgb[3 * (255 - i) + k];
  return { ...m, name: m.name + '_r', rgb };
}

/** Values that are no class. */
const otherClass = 0xffe4e4e4;

/**
 * A picture with a pixel for each element. Missing ones have a hatch of two greys, which no map has,
 * in any of its colours' neighbourhood.
 * @param {import('./plane.js').Win} w @param {Map} map
 */
export function paint(w, map) {
  const canvas = document.createElement('canvas');
  const width = canvas.width = w.x.len, height = canvas.height = w.y.len;
  const img = new ImageData(width, height);
  if (w.pixels) img.data.set(w.shades);
  else {
    const out = new Uint32Array(img.data.buffer), lut = new Uint32Array(256), rgb = map.rgb;
    (w.classes || []).forEach((c, i) => {
      const [r, g, b] = bytes(c.colour);
      lut[i + 1] = 0xff000000 | (b << 16) | (g << 8) | r;
    });
    for (let i = 1; i < 256; i++) {
      if (w.classes) {
        lut[i] ||= otherClass;
        continue;
      }
      const c = 3 * Math.round(((i - 1) / 254) * 255);
      lut[i] = 0xff000000 | (rgb[c + 2] << 16) | (rgb[c + 1] << 8) | rgb[c];
    }
    for (let i = 0; i < out.length; i++) out[i] = lut[w.shades[i]]; // 0 is transparent
  }
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).putImageData(img, 0, 0);
  return canvas;
}

/** The pattern of missing elements: a hatch of greys whose mean is not near the ends of any map. @param {CanvasRenderingContext2D} g */
export function hatch(g) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const t = /** @type {CanvasRenderingContext2D} */ (tile.getContext('2d'));
  t.fillStyle = '#8c8c8c';
  t.fillRect(0, 0, 8, 8);
  t.strokeStyle = '#7a7a7a';
  for (const x of [-8, 0, 8]) {
    t.beginPath();
    t.moveTo(x, 8);
    t.lineTo(x + 8, 0);
    t.stroke();
  }
  return /** @type {CanvasPattern} */ (g.createPattern(tile, 'repeat'));
}
