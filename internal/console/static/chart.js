// Lines over time, one for each group, by uPlot.
import { date } from './format.js';
import { html, useEffect, useMemo, useRef, useState } from './html.js';
import { sheet } from './sheet.js';

/**
 * @typedef {'hour'|'day'|'week'|'month'} Unit
 * @typedef {{title: string, say: (n: number) => string, of: (row: any) => number, add: boolean}} Measure add says that values of groups can be added up
 * @typedef {{id: string, name: string, whole: number, values: (number|null)[]}} Line
 */

const shownLines = 6;
const colours = { light: ['#0f766e', '#b45309', '#4f46a5', '#be185d', '#4d7c0f', '#0369a1', '#6b7280'], dark: ['#5fcdb9', '#f0b060', '#a5a0f0', '#f28cb8', '#a8d060', '#6cbff0', '#9ca3af'] };
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [2, 6]];
const day = 86400;
const increments = { hour: [3600, 3 * 3600, 6 * 3600], day: [day, 2 * day, 5 * day, 7 * day, 14 * day], week: [7 * day, 14 * day, 28 * day], month: [30 * day, 61 * day, 91 * day] };

/** The start of a group of time, as the axis has it. @param {string} text */
const at = (text) => new Date(text.length === 7 ? text + '-01T00:00' : text.length === 10 ? text + 'T00:00' : text).getTime() / 1000;

/** steps are the times of the axis: those without a call are there too. @param {Unit} unit @param {number} days */
function steps(unit, days) {
  const list = [];
  const d = new Date();
  d.setHours(0, 0, 0, 0);
  d.setDate(d.getDate() - days);
  if (unit === 'week') d.setDate(d.getDate() - (d.getDay() + 6) % 7);
  if (unit === 'month') d.setDate(1);
  const end = new Date();
  if (unit === 'hour') end.setHours(23, 59);
  while (d <= end) {
    list.push(d.getTime() / 1000);
    if (unit === 'hour') d.setHours(d.getHours() + 1);
    if (unit === 'day') d.setDate(d.getDate() + 1);
    if (unit === 'week') d.setDate(d.getDate() + 7);
    if (unit === 'month') d.setMonth(d.getMonth() + 1);
  }
  return list;
}

const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);

/**
 * series are the lines of the groups that have most; of what can be added up, the others are one.
 * @param {any[]} rows @param {Unit} unit @param {number} days @param {string} by @param {(row: any) => string} named @param {Measure} measure
 */
function series(rows, unit, days, by, named, measure) {
  const x = steps(unit, days);
  const place = new Map(x.map((t, i) => [t, i]));
  const lines = /** @type {Map<string, Line>} */ (new Map());
  for (const row of rows) {
    const id = row[by] ?? '';
    const line = lines.get(id) ?? { id, name: named(row), whole: 0, values: x.map((t) => (t * 1000 > Date.now() || !measure.add ? null : 0)) };
    lines.set(id, line);
    const i = place.get(at(row[unit]));
    line.whole += measure.add ? measure.of(row) : row.calls;
    if (i !== undefined) line.values[i] = (line.values[i] ?? 0) + measure.of(row);
  }
  const all = [...lines.values()].sort((a, b) => b.whole - a.whole);
  const rest = all.splice(shownLines);
  if (rest.length && measure.add) all.push({ id: '\n', name: `${rest.length} more`, whole: 0, values: x.map((t, i) => (t * 1000 > Date.now() ? null : rest.reduce((n, l) => n + (l.values[i] ?? 0), 0))) });
  return { x, lines: all };
}

/** @param {{rows: any[], unit: Unit, days: number, by: string, named: (row: any) => string, measure: Measure}} props */
export function Chart({ rows, unit, days, by, named, measure }) {
  const ref = useRef(/** @type {HTMLDivElement|null} */ (null));
  const made = useRef(/** @type {any} */ (null));
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const { x, lines } = useMemo(() => series(rows, unit, days, by, named, measure), [rows, unit, days, by, measure]);
  const palette = colours[isDark() ? 'dark' : 'light'];
  useEffect(() => {
    const box = /** @type {HTMLDivElement} */ (ref.current);
    let gone = false;
    const size = () => ({ width: box.clientWidth, height: box.clientHeight });
    const watch = new ResizeObserver(() => made.current && Math.abs(made.current.width - box.clientWidth) > 1 && made.current.setSize(size()));
    library().then((uPlot) => {
      if (gone) return;
      const style = getComputedStyle(box);
      const ink = style.getPropertyValue('--muted');
      const grid = { stroke: style.getPropertyValue('--line'), width: 1 };
      const font = '12px ' + style.fontFamily;
      const days = (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((s) => date(new Date(s * 1000)).slice(unit === 'month' ? 0 : 5, unit === 'month' ? 7 : 10));
      made.current = new uPlot({
        ...size(), legend: { show: false }, cursor: { y: false, points: { size: 7 } }, padding: [10, 20, 0, 0],
        scales: { x: { time: true }, y: { range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: [{ stroke: ink, grid: { show: false }, ticks: grid, font, values: unit === 'hour' ? undefined : days, incrs: increments[unit] },
          { stroke: ink, grid, ticks: { show: false }, font, size: 64, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(measure.say) }],
        series: [{}, ...lines.map((line, i) => ({
          label: line.name, show: !hidden.includes(line.id), stroke: palette[i], dash: dashes[i], width: 2, spanGaps: true,
          fill: palette[i] + (lines.length === 1 ? '22' : '0e'), points: { show: x.length < 40, size: 5, fill: palette[i] },
        }))],
      }, [x, ...lines.map((l) => l.values)], box);
      watch.observe(box);
    }, () => { box.textContent = 'The chart could not be fetched.'; });
    return () => { gone = true; watch.disconnect(); made.current?.destroy(); made.current = null; };
  }, [x, lines, palette]);
  const toggle = (/** @type {string} */ id, /** @type {number} */ i) => {
    const show = hidden.includes(id);
    setHidden(show ? hidden.filter((n) => n !== id) : [...hidden, id]);
    made.current?.setSeries(i + 1, { show });
  };
  return html`
    <div class="chart" ref=${ref} role="img" aria-label=${`${measure.title} over time; the table below has the numbers`}></div>
    <ul class="legend" aria-label="Lines of the chart">${lines.map((line, i) => html`<li><button type="button" class="small" aria-pressed=${!hidden.includes(line.id)} onClick=${() => toggle(line.id, i)}>
      <svg viewBox="0 0 30 10" aria-hidden="true"><line x1="0" x2="30" y1="5" y2="5" stroke=${palette[i]} stroke-width="3" stroke-dasharray=${dashes[i].join(' ')} /></svg>${line.name}</button></li>`)}</ul>`;
}

let fetched = /** @type {Promise<any>|null} */ (null);
/** uPlot is no module: it is fetched as a script of this host, once. */
function library() {
  fetched ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = new URL('lib/uPlot.iife.min.js', import.meta.url).pathname;
    script.onload = () => sheet('lib/uPlot.min.css').then(() => resolve(/** @type {any} */ (window).uPlot));
    script.onerror = reject;
    document.head.append(script);
  });
  return fetched;
}
