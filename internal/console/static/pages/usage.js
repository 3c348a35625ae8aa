// @ts-nocheck
// Usage: what was used over time, and by whom.
import { get, query } from '../api.js';
import { costOf, count, date, daysAgo, duration, money, percent, short, zone } from '../format.js';
import { html, useEffect, useMemo, useRef } from '../html.js';
import { link, route, setQuery } from '../route.js';
import { sheet } from '../sheet.js';
import { AsCurl, Card, Empty, Field, Loaded, Page, Stat, Table, useLoad } from '../ui.js';

/** @typedef {{calls: number, failed: number, unpriced: number, total_tokens: number, input_tokens: number, output_tokens: number, cost_usd: string, charge_usd: string, mean_ms: number, [dimension: string]: any}} Row */

const ranges = /** @type {[string, string, number, string][]} */ ([['today', 'Today', 0, 'hour'], ['7', '7 days', 6, 'day'], ['30', '30 days', 29, 'day'], ['90', '90 days', 89, 'week'], ['365', 'A year', 364, 'month']]);
const groups = [['model', 'Model'], ['key', 'Key'], ['team', 'Team'], ['provider', 'Provider'], ['tag', 'Tag']];

/** The measures of the chart. A float is good enough for a line. @type {Record<string, {title: string, of: (row: Row) => number, say: (n: number) => string}>} */
const measures = {
  cost: { title: 'Cost', of: (r) => Number(r.cost_usd), say: (n) => (n ? money(n.toFixed(12)) : '$0') },
  calls: { title: 'Calls', of: (r) => r.calls, say: short },
  tokens: { title: 'Tokens', of: (r) => r.total_tokens, say: short },
  failed: { title: 'Errors', of: (r) => r.failed, say: short },
};
const shownLines = 6;

export default function Usage() {
  const q = route.value.query;
  const range = ranges.find(([name]) => name === q.get('range')) ?? ranges[1];
  const by = groups.find(([name]) => name === q.get('by')) ?? groups[0];
  const measure = Object.hasOwn(measures, q.get('show') ?? '') ? q.get('show') : 'cost';
  const filter = { key: q.get('key'), team: q.get('team'), model: q.get('model'), provider: q.get('provider'), tag: q.get('tag'), since: daysAgo(range[2]), zone };
  const path = '/usage' + query({ ...filter, by: by[0] });
  const usage = useLoad(async (signal) => {
    const [sums, over] = await Promise.all([get(path, signal), get('/usage' + query({ ...filter, by: `${range[3]},${by[0]}` }), signal)]);
    return { sums, over };
  }, [path, range[0]], 15000);
  const narrowed = ['key', 'team', 'model', 'provider', 'tag'].filter((name) => q.get(name));
  return html`
    <${Page} title="Usage" lead="What was used and what it cost. Days are those of your clock."
      actions=${html`<a class="button" href=${'/api/v1/usage/export' + query({ ...filter, zone: '', since: new Date(filter.since + 'T00:00:00').toISOString(), format: 'csv' })} download="calls.csv">CSV</a>`}>
      <div class="filters" role="group" aria-label="What is shown">
        <${Field} label="Time" onChange=${(e) => setQuery({ range: e.currentTarget.value })}>${ranges.map(([name, title]) => html`<option value=${name} selected=${name === range[0]}>${title}</option>`)}<//>
        <${Field} label="By" onChange=${(e) => setQuery({ by: e.currentTarget.value })}>${groups.map(([name, title]) => html`<option value=${name} selected=${name === by[0]}>${title}</option>`)}<//>
        <${Field} label="Show" onChange=${(e) => setQuery({ show: e.currentTarget.value })}>${Object.entries(measures).map(([name, m]) => html`<option value=${name} selected=${name === measure}>${m.title}</option>`)}<//>
        ${narrowed.map((name) => html`<button type="button" onClick=${() => setQuery({ [name]: '' })} aria-label=${`Show every ${name} again`}>${name}: ${q.get(name)} ✕</button>`)}
      </div>
      <${Loaded} of=${usage}>${({ sums, over }) => (sums.calls === 0
        ? html`<${Empty} title="Nothing was used in this time"><p>Every call adds to the sums here, by key, team, model, provider and tag. Clients tag calls by the metadata and headers that <code>usage.tags</code> names in limen.yaml.</p><a class="button primary" href="#/connect">Connect a client</a><//>`
        : html`
          <dl class="stats">
            <${Stat} label="Cost" value=${costOf(sums)} note=${sums.unpriced ? `${count(sums.unpriced)} of ${count(sums.calls)} calls have no known price` : 'what vendors take'} />
            <${Stat} label="Calls" value=${count(sums.calls)} note=${`${duration(sums.mean_ms)} on average`} />
            <${Stat} label="Tokens" value=${short(sums.total_tokens)} note=${count(sums.total_tokens)} />
            <${Stat} label="Errors" value=${count(sums.failed)} tone=${sums.failed ? 'bad' : ''} note=${percent(sums.failed, sums.calls) + ' of calls'} />
          </dl>
          <${Card} title=${`${measures[measure ?? 'cost'].title} by ${by[1].toLowerCase()}`}><${Chart} rows=${over.groups} time=${range[3]} days=${range[2]} by=${by[0]} measure=${measures[measure ?? 'cost']} /><//>
          <${Card} title=${'By ' + by[1].toLowerCase()}><${Table} label=${'Usage by ' + by[1].toLowerCase()} rows=${sorted(sums.groups, measures[measure ?? 'cost'])} id=${(r) => r[by[0]] ?? ''} columns=${[
            { name: by[1], cell: (r) => (r[by[0]] ? html`<a href=${link(['usage'], { ...Object.fromEntries(q), by: by[0] === 'model' ? 'key' : 'model', [by[0]]: r[by[0]] })}>${named(r, by[0])}</a>` : html`<span class="note">none</span>`) },
            { name: 'Calls', number: true, cell: (r) => count(r.calls) },
            { name: 'Errors', number: true, cell: (r) => count(r.failed) },
            { name: 'Input', number: true, cell: (r) => html`<span title=${count(r.input_tokens)}>${short(r.input_tokens)}</span>` },
            { name: 'Output', number: true, cell: (r) => html`<span title=${count(r.output_tokens)}>${short(r.output_tokens)}</span>` },
            { name: 'Tokens', number: true, cell: (r) => html`<span title=${count(r.total_tokens)}>${short(r.total_tokens)}</span>` },
            { name: 'Mean time', number: true, cell: (r) => duration(r.mean_ms) },
            { name: 'Cost', number: true, cell: (r) => html`<span class=${costOf(r) === 'unknown' ? 'unknown' : ''} title=${'$' + r.cost_usd}>${costOf(r)}</span>${r.unpriced > 0 && html`<small>${count(r.unpriced)} unpriced</small>`}` },
          ]} /><//>`)}<//>
      <${AsCurl} of=${{ path }} />
    <//>`;
}

const named = (/** @type {Row} */ row, /** @type {string} */ by) => row[by + '_name'] || row[by] || 'none';
const sorted = (rows, measure) => [...rows].sort((a, b) => measure.of(b) - measure.of(a) || b.calls - a.calls);

/** The start of a group of time, as the axis has it. @param {string} text */
const at = (text) => new Date(text.length === 7 ? text + '-01T00:00' : text.length === 10 ? text + 'T00:00' : text).getTime() / 1000;

/** steps are the times of the axis: those without a call are there too. */
function steps(time, days) {
  const list = [];
  const d = new Date();
  d.setHours(0, 0, 0, 0);
  d.setDate(d.getDate() - days);
  if (time === 'week') d.setDate(d.getDate() - (d.getDay() + 6) % 7);
  if (time === 'month') d.setDate(1);
  const end = new Date();
  if (time === 'hour') end.setHours(23, 59);
  while (d <= end) {
    list.push(d.getTime() / 1000);
    if (time === 'hour') d.setHours(d.getHours() + 1);
    if (time === 'day') d.setDate(d.getDate() + 1);
    if (time === 'week') d.setDate(d.getDate() + 7);
    if (time === 'month') d.setMonth(d.getMonth() + 1);
  }
  return list;
}

const colours = { light: ['#0f766e', '#b45309', '#4f46a5', '#be185d', '#4d7c0f', '#0369a1', '#6b7280'], dark: ['#5fcdb9', '#f0b060', '#a5a0f0', '#f28cb8', '#a8d060', '#6cbff0', '#9ca3af'] };

function Chart({ rows, time, days, by, measure }) {
  const ref = useRef(/** @type {HTMLDivElement|null} */ (null));
  const { x, lines } = useMemo(() => series(rows, time, days, by, measure), [rows, time, days, by, measure]);
  const palette = colours[isDark() ? 'dark' : 'light'];
  useEffect(() => {
    const box = /** @type {HTMLDivElement} */ (ref.current);
    let chart = /** @type {any} */ (null);
    let gone = false;
    const size = () => ({ width: box.clientWidth, height: Math.round(Math.max(190, Math.min(300, box.clientWidth * 0.34))) });
    const watch = new ResizeObserver(() => chart && Math.abs(chart.width - box.clientWidth) > 1 && chart.setSize(size()));
    library().then((uPlot) => {
      if (gone) return;
      const ink = getComputedStyle(box).getPropertyValue('--muted');
      const grid = { stroke: getComputedStyle(box).getPropertyValue('--line'), width: 1 };
      const font = '12px ' + getComputedStyle(box).fontFamily;
      chart = new uPlot({
        ...size(), legend: { show: false }, cursor: { y: false, points: { size: 7 } }, padding: [10, 12, 0, 0],
        scales: { x: { time: true }, y: { range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: [{ stroke: ink, grid: { show: false }, ticks: grid, font, values: time === 'hour' ? undefined : (u, all) => all.map((s) => date(new Date(s * 1000)).slice(time === 'month' ? 0 : 5, time === 'month' ? 7 : 10)), incrs: increments[time] },
          { stroke: ink, grid, ticks: { show: false }, font, size: 64, values: (u, all) => all.map(measure.say) }],
        series: [{}, ...lines.map((line, i) => ({ label: line.name, stroke: palette[i], width: 2, fill: palette[i] + (lines.length === 1 ? '22' : '0e'), points: { show: x.length < 40, size: 5, fill: palette[i] } }))],
      }, [x, ...lines.map((l) => l.values.map((v) => (Number.isNaN(v) ? null : v)))], box);
      watch.observe(box);
    }, () => { box.textContent = 'The chart could not be fetched.'; });
    return () => { gone = true; watch.disconnect(); chart?.destroy(); };
  }, [x, lines, palette]);
  return html`
    <div class="chart" ref=${ref} role="img" aria-label=${`${measure.title} over time; the table below has the sums`}></div>
    <ul class="legend">${lines.map((line, i) => html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill=${palette[i]} /></svg>${line.name}</li>`)}</ul>`;
}

const day = 86400;
const increments = { hour: [3600, 3 * 3600, 6 * 3600], day: [day, 2 * day, 5 * day, 7 * day, 14 * day], week: [7 * day, 14 * day, 28 * day], month: [30 * day, 61 * day, 91 * day] };

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function series(rows, time, days, by, measure) {
  const x = steps(time, days);
  const place = new Map(x.map((t, i) => [t, i]));
  const sums = /** @type {Map<string, {name: string, whole: number, values: number[]}>} */ (new Map());
  for (const row of rows) {
    const id = row[by] ?? '';
    const line = sums.get(id) ?? { name: named(row, by), whole: 0, values: x.map((t) => (t * 1000 > Date.now() ? NaN : 0)) };
    sums.set(id, line);
    const i = place.get(at(row[time]));
    line.whole += measure.of(row);
    if (i !== undefined) line.values[i] += measure.of(row);
  }
  const all = [...sums.values()].sort((a, b) => b.whole - a.whole);
  const lines = all.slice(0, shownLines);
  const rest = all.slice(shownLines);
  if (rest.length) lines.push({ name: `${rest.length} others`, whole: 0, values: x.map((_, i) => rest.reduce((n, l) => n + l.values[i], 0)) });
  return { x, lines };
}

let fetched = /** @type {Promise<any>|null} */ (null);
/** uPlot is no module: it is fetched as a script of this host, once. */
function library() {
  fetched ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = new URL('../lib/uPlot.iife.min.js', import.meta.url).pathname;
    script.onload = () => sheet('lib/uPlot.min.css').then(() => resolve(/** @type {any} */ (window).uPlot));
    script.onerror = reject;
    document.head.append(script);
  });
  return fetched;
}
