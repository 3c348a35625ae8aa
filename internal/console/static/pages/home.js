// How it stands: whether everything is set up, what today brought, and what should be looked at.
import { get, query, seesAll } from '../api.js';
import { CallTable } from '../calltable.js';
import { costOf, count, date, daysAgo, duration, percent, short, zone } from '../format.js';
import { Checklist } from '../home/checklist.js';
import { Lights, Warnings, warningsOf } from '../home/warnings.js';
import { html } from '../html.js';
import { link } from '../route.js';
import { sheet } from '../sheet.js';
import { Card, Loaded, Page, Stat, Table, useGet, useLoad } from '../ui.js';

await sheet('home/home.css');

/** @typedef {import('../home/warnings.js').Row} Row */

/** yesterday is the part of it that is as long as today is by now, in whole hours: sums are kept by the hour. */
function yesterday() {
  const until = new Date();
  until.setDate(until.getDate() - 1);
  until.setMinutes(0, 0, 0);
  return { since: daysAgo(1), until: until.toISOString(), hour: until.getHours() };
}

export default function Home() {
  const before = yesterday();
  const day = date(new Date());
  const today = useLoad(async (signal) => {
    const [byModel, byKey] = await Promise.all(['model', 'key'].map((by) => get('/usage' + query({ by, since: day, zone }), signal)));
    return { byModel, byKey };
  }, [day], 5000);
  const compared = useLoad(async (signal) => {
    if (!before.hour) return null;
    const span = { since: before.since, until: before.until, zone };
    const [sums, times] = await Promise.all([get('/usage' + query(span), signal), get('/usage/latency' + query(span), signal)]);
    return { sums, times };
  }, [before.until]);
  const times = useGet('/usage/latency' + query({ since: day, zone }), 15000);
  const setup = useLoad(async (signal) => {
    const all = seesAll();
    const [providers, models, status, keys, teams, calls] = await Promise.all([
      all ? get('/providers', signal) : { providers: [] }, all ? get('/models', signal) : { models: [] }, all ? get('/status', signal) : null,
      get('/keys', signal), get('/teams', signal), get('/calls?limit=8', signal)]);
    return { ...providers, ...models, ...keys, ...teams, ...calls, status };
  }, [], 3000);
  const past = (/** @type {(sums: any) => string} */ say) => compared.data?.sums && html`<br />${`${say(compared.data.sums)} yesterday by ${before.hour}:00`}`;
  return html`
    <${Page} title="Home" lead="One address for every model, and what came of it today.">
      <${Loaded} of=${today}>${(/** @type {{byModel: any}} */ { byModel: t }) => html`
        <dl class="stats" aria-label="Today">
          <${Stat} label="Calls today" value=${count(t.calls)} note=${html`${t.calls ? `${duration(t.mean_ms)} on average` : 'since midnight here'}${past((y) => count(y.calls))}`} />
          <${Stat} label="Cost" value=${t.calls ? costOf(t) : '$0'} note=${html`${t.unpriced ? `${count(t.unpriced)} without a known price` : 'what vendors take'}${past((y) => (y.calls ? costOf(y) : '$0'))}`} />
          <${Stat} label="Tokens" value=${short(t.total_tokens)} note=${html`${`${short(t.total_tokens - t.output_tokens - t.reasoning_tokens)} in, ${short(t.output_tokens + t.reasoning_tokens)} out`}${past((y) => short(y.total_tokens))}`} />
          <${Stat} label="Errors" value=${count(t.failed)} tone=${t.failed ? 'bad' : ''} note=${html`${t.calls ? percent(t.failed, t.calls) + ' of calls' : 'none'}${past((y) => count(y.failed))}`} />
          <${Stat} label="First token" value=${duration(times.data?.first_byte_p50_ms ?? 0)}
            note=${html`${times.data?.whole === false ? `median of the newest ${short(times.data.calls)}` : 'median'}${compared.data?.times && html`<br />${`${duration(compared.data.times.first_byte_p50_ms)} yesterday by ${before.hour}:00`}`}`} />
        </dl>`}<//>
      <${Loaded} of=${setup}>${(/** @type {any} */ s) => html`
        ${s.status && html`<${Checklist} ...${s} />`}
        <${Warnings} of=${warningsOf({ ...s, byModel: today.data?.byModel.groups ?? [], pending: s.status?.usage_records_pending ?? 0 })} />
        ${(today.data?.byModel.calls ?? 0) > 0 && html`<div class="two">
          <${Top} title="Models today" by="model" rows=${today.data?.byModel.groups ?? []} />
          <${Top} title="Keys today" by="key" rows=${today.data?.byKey.groups ?? []} />
        </div>`}
        ${s.providers.length > 0 && html`<${Lights} providers=${s.providers} models=${s.models} />`}
        ${s.calls.length > 0 && html`<${Card} title="Newest calls" aside=${html`<a href="#/calls">All calls</a>`}><${CallTable} calls=${s.calls} /><//>`}
        ${s.status && html`<p class="note">Limen ${s.status.version}</p>`}`}<//>
    <//>`;
}

const shown = 5;

/** The groups of today that cost most; of equals, those with most calls. @param {{title: string, by: 'model'|'key', rows: Row[]}} props */
function Top({ title, by, rows }) {
  const top = [...rows].sort((a, b) => Number(b.cost_usd) - Number(a.cost_usd) || b.calls - a.calls).slice(0, shown);
  return html`
    <${Card} title=${title} aside=${html`<a href=${link(['usage'], { range: 'today', by })}>All of them</a>`}>
      <${Table} label=${title} rows=${top} id=${(/** @type {Row} */ r) => r[by] ?? ''} columns=${[
        { name: by === 'model' ? 'Model' : 'Key', cell: (/** @type {Row} */ r) => (r[by] ? html`<a href=${link([by + 's', r[by] ?? ''])}>${(by === 'key' && r.key_name) || r[by]}</a>` : html`<span class="note">none</span>`) },
        { name: 'Calls', number: true, cell: (/** @type {Row} */ r) => html`<a href=${link(['calls'], { [by]: r[by], since: date(new Date()) })}>${count(r.calls)}</a>` },
        { name: 'Tokens', number: true, cell: (/** @type {Row} */ r) => html`<span title=${count(r.total_tokens)}>${short(r.total_tokens)}</span>` },
        { name: 'Cost', number: true, cell: (/** @type {Row} */ r) => html`<span class=${costOf(r) === 'unknown' ? 'unknown' : ''}>${costOf(r)}</span>` },
      ]} />
    <//>`;
}
