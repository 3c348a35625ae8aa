// Usage: what was used over time, and by whom.
import { get, query } from '../api.js';
import { Chart } from '../chart.js';
import { costOf, count, date, daysAgo, duration, money, percent, short, zone } from '../format.js';
import { html } from '../html.js';
import { link, route, setQuery } from '../route.js';
import { AsCurl, Card, Empty, Field, Loaded, Page, Stat, Table, useLoad } from '../ui.js';

/**
 * @typedef {import('../../types').UsageRow & Partial<import('../../types').LatencyRow>} Row
 * @typedef {'model'|'key'|'team'|'provider'|'tag'} By
 * @typedef {import('../chart.js').Measure & {times?: boolean}} Measure times: it is of the newest calls
 */

const ranges = /** @type {[string, string, number, import('../chart.js').Unit][]} */ ([['today', 'Today', 0, 'hour'], ['7', '7 days', 6, 'day'], ['30', '30 days', 29, 'day'], ['90', '90 days', 89, 'week'], ['365', 'A year', 364, 'month']]);
const groups = /** @type {[By, string][]} */ ([['model', 'Model'], ['key', 'Key'], ['team', 'Team'], ['provider', 'Provider'], ['tag', 'Tag']]);
const narrow = groups.map(([name]) => name);

/** The measures of the chart. A float is good enough for a line. @type {Record<string, Measure>} */
const measures = {
  cost: { title: 'Cost', add: true, of: (r) => Number(r.cost_usd), say: (n) => (n ? money(n.toFixed(12)) : '$0') },
  calls: { title: 'Calls', add: true, of: (r) => r.calls, say: short },
  tokens: { title: 'Tokens', add: true, of: (r) => r.total_tokens, say: short },
  failed: { title: 'Errors', add: true, of: (r) => r.failed, say: short },
  cached: { title: 'Cached input, %', add: false, of: (r) => cached(r) * 100, say: short },
  p50: { title: 'Time, median', add: false, times: true, of: (r) => r.p50_ms, say: (n) => (n ? duration(n) : '0') },
  p95: { title: 'Time, 19 of 20', add: false, times: true, of: (r) => r.p95_ms, say: (n) => (n ? duration(n) : '0') },
  first: { title: 'First token, median', add: false, times: true, of: (r) => r.first_byte_p50_ms, say: (n) => (n ? duration(n) : '0') },
};

/** @param {import('../../types').Usage | Row} r */
const input = (r) => r.input_tokens + r.cache_read_tokens + r.cache_write_tokens + r.cache_write_1h_tokens;
/** cached is the part of the input that was read from caches. @param {import('../../types').Usage | Row} r */
const cached = (r) => (input(r) ? r.cache_read_tokens / input(r) : 0);

/** change says how much more or less something is than before. @param {number} now @param {number} before */
function change(now, before) {
  if (!before) return now ? 'nothing before' : '';
  const part = Math.round((now / before - 1) * 100);
  return part ? `${part > 0 ? '+' : '−'}${Math.abs(part)} % to before` : 'as before';
}

/** forecast is what a month comes to at its pace so far. @param {string} cost */
function forecast(cost) {
  const now = new Date();
  const from = new Date(now.getFullYear(), now.getMonth(), 1).getTime();
  const to = new Date(now.getFullYear(), now.getMonth() + 1, 1).getTime();
  return money((Number(cost) * (to - from) / Math.max(now.getTime() - from, 1)).toFixed(12));
}

export default function Usage() {
  const q = route.value.query;
  const [range, , days, unit] = ranges.find(([name]) => name === q.get('range')) ?? ranges[1];
  const [by, title] = groups.find(([name]) => name === q.get('by')) ?? groups[0];
  const show = q.get('show') ?? '';
  const measure = Object.hasOwn(measures, show) ? measures[show] : measures.cost;
  const only = Object.fromEntries(narrow.map((name) => [name, q.get(name)]));
  const filter = { ...only, since: daysAgo(days), zone };
  const path = query({ ...filter, by });
  const usage = useLoad(async (signal) => {
    const over = (measure.times ? '/usage/latency' : '/usage') + query({ ...filter, by: `${unit},${by}` });
    const ask = /** @type {(path: string) => Promise<any>} */ ((path) => get(path, signal));
    const [sums, times, before, month, line] = await Promise.all([
      ask('/usage' + path), ask('/usage/latency' + path), ask('/usage' + query({ ...only, zone, since: daysAgo(2 * days + 1), until: daysAgo(days) })),
      ask('/usage' + query({ ...only, zone, since: date(new Date()).slice(0, 8) + '01' })), ask(over)]);
    const timesOf = new Map(times.groups.map((/** @type {Row} */ g) => [g[by] ?? '', g]));
    const rows = sums.groups.map((/** @type {Row} */ r) => ({ ...timesOf.get(r[by] ?? ''), ...r }));
    return { sums, times, before, month, rows, line: line.groups };
  }, [path, unit, measure], 30000);
  const choose = (/** @type {string} */ name) => (/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => setQuery({ [name]: e.currentTarget.value });
  const named = (/** @type {Row} */ row) => (by === 'key' && row.key_name) || (by === 'team' && row.team_name) || row[by] || 'none';
  const calls = '/api/v1/usage/export' + query({ ...only, since: new Date(filter.since + 'T00:00:00').toISOString() });
  return html`
    <${Page} title="Usage" lead="What was used and what it cost. Days are those of your clock.">
      <div class="filters" role="group" aria-label="What is shown">
        <${Field} label="Time" onChange=${choose('range')}>${ranges.map(([name, text]) => html`<option value=${name} selected=${name === range}>${text}</option>`)}<//>
        <${Field} label="By" onChange=${choose('by')}>${groups.map(([name, text]) => html`<option value=${name} selected=${name === by}>${text}</option>`)}<//>
        <${Field} label="Show" onChange=${choose('show')}>${Object.entries(measures).map(([name, m]) => html`<option value=${name} selected=${m === measure}>${m.title}</option>`)}<//>
        ${narrow.filter((name) => only[name]).map((name) => html`<button type="button" onClick=${() => setQuery({ [name]: '' })} aria-label=${`Show every ${name} again`}>${name}: ${only[name]} ✕</button>`)}
      </div>
      <${Loaded} of=${usage}>${(/** @type {any} */ { sums, times, before, month, rows, line }) => (sums.calls === 0
        ? html`<${Empty} title="Nothing was used in this time"><p>Every call adds to the sums here, by key, team, model, provider and tag. Clients tag calls by the metadata and headers that <code>usage.tags</code> names in limen.yaml.</p><a class="button primary" href="#/connect">Connect a client</a><//>`
        : html`
          <dl class="stats" aria-label="In all">
            <${Stat} label="Cost" value=${costOf(sums)} note=${sums.unpriced ? `${count(sums.unpriced)} of ${count(sums.calls)} calls have no known price` : change(Number(sums.cost_usd), Number(before.cost_usd))} />
            <${Stat} label="This month" value=${costOf(month)} note=${`≈ ${forecast(month.cost_usd)} by its end, at this pace`} />
            <${Stat} label="Calls" value=${count(sums.calls)} note=${html`${`${count(sums.failed)} failed, ${percent(sums.failed, sums.calls)}`}<br />${change(sums.calls, before.calls)}`} />
            <${Stat} label="Tokens" value=${short(sums.total_tokens)} note=${change(sums.total_tokens, before.total_tokens)} />
            <${Stat} label="Cached input" value=${percent(cached(sums), 1)} note=${`${short(sums.cache_read_tokens)} of ${short(input(sums))}, ${percent(cached(before), 1)} before`} />
            <${Stat} label="First token" value=${duration(times.first_byte_p50_ms)} note=${`median; 19 of 20 in ${duration(times.first_byte_p95_ms)}`} />
          </dl>
          <${Card} title=${`${measure.title} by ${title.toLowerCase()}`}><${Chart} rows=${line} unit=${unit} days=${days} by=${by} named=${named} measure=${measure} /><//>
          <${Card} title=${'By ' + title.toLowerCase()} aside=${html`<small>This table: <a href=${'/api/v1/usage/table' + path} download="usage.csv">CSV</a>, <a href=${'/api/v1/usage' + path} download="usage.json">JSON</a></small>`}>
            <${Groups} rows=${rows} by=${by} title=${title} named=${named} measure=${measure} />
          <//>
          <p class="note">Times are of ${times.whole ? 'all calls' : `the newest ${count(times.calls)} calls`} that ended well${times.whole ? '' : ', in the chart of the newest thousand of each step'}.
            Their records: <a href=${calls + '&format=csv'} download="calls.csv">CSV</a>, <a href=${calls + '&format=jsonl'} download="calls.jsonl">JSON</a>.</p>`)}<//>
      <${AsCurl} of=${{ path: '/usage' + path }} />
    <//>`;
}

/** @param {{rows: Row[], by: By, title: string, named: (row: Row) => string, measure: Measure}} props */
function Groups({ rows, by, title, named, measure }) {
  const sorted = [...rows].sort((a, b) => (measure.of(b) || 0) - (measure.of(a) || 0) || b.calls - a.calls);
  const inside = (/** @type {Row} */ r) => link(['usage'], { ...Object.fromEntries(route.value.query), by: by === 'model' ? 'key' : 'model', [by]: r[by] });
  const number = (/** @type {string} */ name, /** @type {(r: Row) => any} */ cell) => ({ name, number: true, cell });
  return html`<${Table} label=${'Usage by ' + title.toLowerCase()} rows=${sorted} id=${(/** @type {Row} */ r) => r[by] ?? ''} columns=${[
    { name: title, cell: (/** @type {Row} */ r) => (r[by] ? html`<a href=${inside(r)}>${named(r)}</a>` : html`<span class="note">none</span>`) },
    number('Calls', (r) => count(r.calls)),
    number('Errors', (r) => count(r.failed)),
    number('Tokens', (r) => html`<span title=${count(r.total_tokens)}>${short(r.total_tokens)}</span>`),
    number('Cached', (r) => percent(cached(r), 1)),
    number('Median', (r) => duration(r.p50_ms ?? 0)),
    number('19 of 20', (r) => duration(r.p95_ms ?? 0)),
    number('First token', (r) => duration(r.first_byte_p50_ms ?? 0)),
    number('Cost', (r) => html`<span class=${costOf(r) === 'unknown' ? 'unknown' : ''} title=${'$' + r.cost_usd}>${costOf(r)}</span>${r.unpriced > 0 && html`<small>${count(r.unpriced)} unpriced</small>`}`),
  ]} />`;
}
