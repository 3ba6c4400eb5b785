// A map of the chunks of an array, coloured by the commit that wrote them.
import { html, useState } from './lib/preact-htm.js';
import { get } from './api.js';
import { go, link, useLoad } from './state.js';
import * as text from './text.js';
import { axes as readAxes } from './coords.js';
import { Plane, readWindow } from './plane.js';
import { Slider, planeOf, viewOf, viewText } from './picture.js';
import { Failure, Loading } from './parts.js';

/** @param {number} i @param {number} n the i-th of n commits, newest first */
const shade = (i, n) => `hsl(${Math.round(215 + (n > 1 ? (i / (n - 1)) * 170 : 0)) % 360} 55% ${42 + 22 * (i % 2)}%)`;

/** @param {{ shown: import('./main.js').Shown, info: any }} p */
export function Blame({ shown, info }) {
  const { db, commit, state } = shown;
  const { value, error } = useLoad((signal) => get('blame', { db, rev: commit, path: info.path }, signal), [db, commit, info.path]);
  const { value: of } = useLoad(() => readAxes(shown, info), [db, commit, info.path]);
  const axes = of && of.axes, y = planeOf(info, state).y, x = planeOf(info, state).x;
  const seen = viewOf(state.win, info.shape[y] || 1, info.shape[x] || 1);
  const { value: win } = useLoad((signal) => (info.shape.length < 2 ? Promise.resolve(null) : readWindow(shown, commit, info.path, planeOf(info, state), seen, { // for the labels of axes
    width: 1, height: 1, chunks: 1, yticks: 8, xticks: 8, limits: { lo: 0, hi: 1 }, see: { ysee: [seen.y0, seen.y1], xsee: [seen.x0, seen.x1] } }, signal).catch(() => null)), [db, commit, info.path, y, x, state.win]);
  const [at, setAt] = useState(/** @type {any} */ (null));
  if (error) return html`<${Failure} error=${error} />`;
  if (!value || !axes) return html`<${Loading} />`;
  const commits = [...new Map(value.map((/** @type {any} */ e) => [e.commit, e])).values()].sort((x, y) => (x.time < y.time ? 1 : -1));
  const colour = Object.fromEntries(commits.map((c, i) => [c.commit, shade(i, commits.length)]));
  const plane = planeOf(info, state);
  const flat = info.shape.length >= 2;
  const inSlice = value.filter((/** @type {any} */ e) => e.start && e.start.every((/** @type {number} */ s, /** @type {number} */ d) => (flat && (d === plane.y || d === plane.x)) || (s <= plane.at[d] && plane.at[d] < s + e.shape[d])));
  const boxes = flat ? inSlice.slice(0, 10_000).map((/** @type {any} */ e) => ({ y: e.start[plane.y], x: e.start[plane.x], height: e.shape[plane.y], width: e.shape[plane.x], fill: colour[e.commit], commit: e })) : [];
  const under = at && boxes.find((/** @type {any} */ b) => at.y >= b.y && at.y < b.y + b.height && at.x >= b.x && at.x < b.x + b.width);
  const view = flat && viewOf(state.win, info.shape[plane.y], info.shape[plane.x]);
  const set = (/** @type {number} */ d) => (/** @type {number} */ i) => go({ at: plane.at.map((/** @type {number} */ v, /** @type {number} */ k) => (k === d ? i : v)).join(',') }, true);
  return html`${flat && html`${axes.map((x, d) => d !== plane.y && d !== plane.x && html`<${Slider} key=${d} axis=${x} at=${plane.at[d]} set=${set(d)} />`)}
    <${Plane} shown=${{ win: win || null, base: null, busy: false }} map=${undefined} yAxis=${axes[plane.y]} xAxis=${axes[plane.x]} up=${axes[plane.y].up} view=${view} boxes=${boxes} most=${0.4} name=${`Chunks of ${info.path} by commit`}
      setView=${(/** @type {any} */ v) => go({ win: viewText(v, info.shape[plane.y], info.shape[plane.x]) }, true)} onSize=${() => {}} onPoint=${setAt} />
    <p class="readout">${under ? html`<span class="id">${under.commit.commit.slice(0, 10)}</span> ${under.commit.message} <span class="dim">${under.commit.author}, ${text.ago(under.commit.time)}</span>` : html`<span class="dim">Point at a chunk for its commit. Chunks that are not stored have no colour.</span>`}</p>`}
    <ul class="legend">${commits.slice(0, 50).map((c) => html`<li><span class="swatch" style=${{ background: colour[c.commit] }} /><a class="id" href=${link({ commit: c.commit })}>${c.commit.slice(0, 10)}</a> ${c.message} <span class="dim">${text.count(value.filter((/** @type {any} */ e) => e.commit === c.commit).length, 'place')}</span></li>`)}</ul>`;
}
