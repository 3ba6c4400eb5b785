// What numbers, times, types and codecs are called for people.

/** @param {number} n bytes */
export function size(n) {
  let unit = 0;
  for (; n >= 1024 && unit < 6; unit++) n /= 1024;
  return `${unit ? n.toFixed(1) : n} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit]}`;
}

/** @param {number} n @param {string} word @param {string} [plural] */
export const count = (n, word, plural) => `${n.toLocaleString('en')} ${n === 1 ? word : plural || word + 's'}`;

/** @param {number} v a value, with all its digits */
export function number(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return 'missing';
  return String(v).replace('Infinity', '∞');
}

/** @param {any} v a value of decoded JSON */
export function value(v) {
  if (typeof v === 'number') return number(v);
  if (v === 'NaN' || v === null || v === 'NaT') return 'missing';
  return typeof v === 'string' ? v : JSON.stringify(v);
}

/** @param {string} t RFC 3339 */
export function time(t) {
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return t;
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** @param {string} t RFC 3339, or a date as a label: without a time of day that is midnight */
export const label = (t) => (typeof t === 'string' ? t.replace(/T00:00(:00)?$/, '').replace('T', ' ') : value(t));

/** @param {string} t */
export function ago(t) {
  let s = (Date.now() - new Date(t).getTime()) / 1000;
  if (!(s >= 60)) return 'just now';
  for (const [unit, n] of /** @type {[string, number][]} */ ([['minute', 60], ['hour', 60], ['day', 24], ['month', 30.4], ['year', 12.01]])) {
    s /= n;
    const next = { minute: 60, hour: 24, day: 30.4, month: 12 }[unit];
    if (!next || s < next) return count(Math.floor(s), unit) + ' ago';
  }
  return t;
}

/** @param {any} t a data type of metadata */
export function dtype(t) {
  if (typeof t === 'string') return t;
  if (Array.isArray(t)) return 'struct of ' + t.map((f) => f[0]).join(', ');
  if (t && t.name === 'numpy.datetime64') return `datetime64[${t.configuration?.unit}]`;
  if (t && t.name === 'numpy.timedelta64') return `timedelta64[${t.configuration?.unit}]`;
  if (t && t.configuration?.fields) return 'struct of ' + t.configuration.fields.map((/** @type {any} */ f) => f[0] ?? f.name).join(', ');
  return t ? t.name || JSON.stringify(t) : '';
}

/** @param {string | undefined} s a longitude, or else "" */
export const longitude = (s) => (/^-?\d{1,4}(\.\d{1,9})?$/.test(s || '') ? s || '' : '');

/** Whether elements have a picture. @param {any} info */
export const isNumeric = (info) => /^(bool|u?int\d|b?float\d|complex|datetime64|timedelta64|[<>|=]?[biufcmM]\d)/.test(dtype(info.data_type));

/** @param {any} t bytes of an element, 0 if they vary */
export function itemSize(t) {
  const name = dtype(t);
  if (name === 'bool') return 1;
  if (/datetime64|timedelta64/.test(name)) return 8;
  const v2 = /^[<>|]?[biufcmM](\d+)/.exec(name);
  if (v2) return Number(v2[1]);
  const v3 = /^(?:int|uint|float|bfloat)(\d+)$/.exec(name);
  if (v3) return Number(v3[1]) / 8;
  const complex = /^complex(\d+)$/.exec(name);
  return complex ? Number(complex[1]) / 8 : 0;
}

/** @param {any} c a codec of metadata: its name, or with its configuration @returns {string} */
function codec(c) {
  if (typeof c === 'string') return c;
  if (!c) return '';
  const name = c.name || c.id, o = c.configuration || c;
  switch (name) {
    case 'bytes':
      return o.endian === 'big' ? 'big-endian bytes' : o.endian ? 'little-endian bytes' : 'bytes';
    case 'sharding_indexed':
      return `shards of chunks ${(o.chunk_shape || []).join(' × ')} (${codecs(o.codecs)})`;
    case 'transpose':
      return `axes in the order ${Array.isArray(o.order) ? o.order.join(', ') : o.order}`;
    case 'zstd':
      return `compressed with zstd, level ${o.level ?? 0}`;
    case 'gzip': case 'zlib': case 'bz2': case 'lzma':
      return `compressed with ${name}` + (o.level !== undefined ? `, level ${o.level}` : '');
    case 'blosc': {
      const shuffle = { 0: '', 1: ', bytes shuffled', 2: ', bits shuffled', shuffle: ', bytes shuffled', bitshuffle: ', bits shuffled' };
      return `compressed with Blosc (${o.cname}, level ${o.clevel}${shuffle[/** @type {1} */ (o.shuffle)] || ''})`;
    }
    case 'crc32c':
      return 'checksum crc32c';
    case 'vlen-utf8':
      return 'texts of any length';
    case 'fixedscaleoffset':
      return `scaled by ${o.scale}, offset ${o.offset}`;
  }
  const rest = Object.entries(o).filter(([k]) => k !== 'id' && k !== 'name');
  return name + (rest.length ? ` (${rest.map(([k, v]) => `${k} ${JSON.stringify(v)}`).join(', ')})` : '');
}

/** @param {any} c the codecs of an array, of any version of Zarr @returns {string} */
export function codecs(c) {
  if (!c) return 'none';
  const all = Array.isArray(c) ? c : [...(c.filters || []), c.compressor, c.order === 'F' ? 'columns first' : null];
  const words = all.filter(Boolean).map(codec);
  return words.length ? words.join(' → ') : 'not compressed';
}

/** @param {string} s a word of a shell @returns {string} */
export const shell = (s) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** Text for a download. @param {string} name @param {Blob} blob */
export function save(name, blob) {
  const href = URL.createObjectURL(blob);
  saveFrom(name, href);
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** A download that the browser writes as it comes. @param {string} name @param {string} href */
export function saveFrom(name, href) {
  const a = document.createElement('a');
  a.href = href;
  a.download = name;
  a.click();
}
