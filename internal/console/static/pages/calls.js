// Calls: the newest first, by what is looked for.
import { get, query, seesAll } from '../api.js';
import { One } from '../callpage.js';
import { CallTable } from '../calltable.js';
import { daysAgo } from '../format.js';
import { html, useEffect, useState } from '../html.js';
import { route, setQuery } from '../route.js';
import { AsCurl, Card, Empty, Field, Page, Problem, useGet, useLoad } from '../ui.js';

/** @param {{rest: string[]}} props */
export default function Calls({ rest }) {
  return rest[0] ? html`<${One} id=${rest[0]} />` : html`<${List} />`;
}

/** @typedef {import('../calltable.js').Call} Call */

const filters = ['key', 'team', 'model', 'provider', 'tag', 'status', 'failed', 'cost_min', 'since', 'until'];
const page = 50;

/** instant is the start of a day of the reader's, or of the day after; a time stays. @param {string} text @param {number} [after] */
function instant(text, after = 0) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return text;
  const at = new Date(text + 'T00:00:00');
  at.setDate(at.getDate() + after);
  return at.toISOString();
}

function List() {
  const q = route.value.query;
  const chosen = Object.fromEntries(filters.map((name) => [name, q.get(name) ?? '']));
  const filter = { ...chosen, since: instant(chosen.since), until: instant(chosen.until, 1) };
  const asked = query(filter);
  const live = q.get('live') !== 'off';
  const [calls, setCalls] = useState(/** @type {Call[]|null} */ (null));
  const [next, setNext] = useState('');
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const [turn, again] = useState(0);

  useEffect(() => {
    const leave = new AbortController();
    let timer = 0;
    let first = true;
    setCalls(null);
    const ask = async () => {
      if (!document.hidden || first) {
        try {
          const d = await get('/calls' + query({ ...filter, limit: page }), leave.signal);
          setError(null);
          if (first) setNext(d.next ?? '');
          first = false;
          // What is new goes before what is shown, unless more came than one answer holds.
          setCalls((old) => {
            const at = d.calls.findIndex((/** @type {Call} */ c) => c.request_id === old?.[0]?.request_id);
            if (!old || old.length === 0 || at < 0) {
              setNext(d.next ?? '');
              return d.calls;
            }
            return at === 0 ? old : [...d.calls.slice(0, at), ...old];
          });
        } catch (err) {
          if (!leave.signal.aborted) setError(/** @type {Error} */ (err));
        }
      }
      if (live && !leave.signal.aborted) timer = setTimeout(ask, 2000);
    };
    ask();
    return () => { leave.abort(); clearTimeout(timer); };
  }, [asked, live, turn]);

  const more = async () => {
    try {
      const d = await get('/calls' + query({ ...filter, limit: page, before: next }));
      setCalls((old) => [...(old ?? []), ...d.calls]);
      setNext(d.next ?? '');
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
  };
  return html`
    <${Page} title="Calls" lead="Every call that came to the gateway, newest first."
      actions=${html`<button type="button" aria-pressed=${live} onClick=${() => setQuery({ live: live ? 'off' : '' })}><span class="light ${live ? 'good' : ''}"></span>${live ? 'Live' : 'Paused'}</button>`}>
      <${Filters} chosen=${chosen} />
      ${error && html`<${Problem} error=${error} retry=${() => again((n) => n + 1)} />`}
      ${calls === null ? !error && html`<div class="loading" role="status"><span class="away">Loading</span></div>`
        : calls.length === 0 ? (asked
          ? html`<${Empty} title="No call is like that"><p>Nothing in the records matches these filters. <a href="#/calls">Show all calls</a></p><//>`
          : html`<${Empty} title="No call yet"><p>As soon as a client calls, it is here: which model, who, how long, what it cost, and why it went where it went.</p><a class="button primary" href="#/connect">Connect a client</a><//>`)
        : html`<${Card}><${CallTable} calls=${calls} /><//>`}
      <div class="row">
        ${next && (calls?.length ?? 0) > 0 && html`<button type="button" onClick=${more}>Older calls</button>`}
        ${(calls?.length ?? 0) > 0 && html`<span>All that match: <a href=${'/api/v1/usage/export' + query({ ...filter, format: 'csv' })} download="calls.csv">CSV</a>, <a href=${'/api/v1/usage/export' + query({ ...filter, format: 'jsonl' })} download="calls.jsonl">JSON</a></span>`}
        <${AsCurl} of=${{ path: '/calls' + query({ ...filter, limit: page }) }} />
      </div>
    <//>`;
}

/** @param {{chosen: Record<string, string>}} props */
function Filters({ chosen }) {
  const keys = useGet('/keys');
  const teams = useGet('/teams');
  const models = useLoad(async (signal) => (seesAll() ? (await get('/models', signal)).models.map((m) => m.id)
    : (await get('/usage' + query({ by: 'model', since: daysAgo(30) }), signal)).groups.flatMap((/** @type {import('../../types').UsageRow} */ g) => g.model ?? [])), []);
  const set = (/** @type {string} */ name) => (/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setQuery({ [name]: e.currentTarget.value });
  const outcome = (/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setQuery({ failed: e.currentTarget.value === 'true' ? 'true' : '', status: e.currentTarget.value === 'true' ? '' : e.currentTarget.value });
  const any = filters.some((name) => chosen[name]);
  const option = (/** @type {{id: string, name?: string}} */ of, /** @type {string} */ value) => html`<option value=${of.id} selected=${value !== '' && (of.id === value || of.name === value)}>${of.name ?? of.id}</option>`;
  return html`
    <div class="filters" role="group" aria-label="Filters">
      <${Field} label="Key" onChange=${set('key')}><option value="">all</option>${(keys.data?.keys ?? []).map((k) => option(k, chosen.key))}<//>
      ${(teams.data?.teams.length ?? 0) > 0 && html`<${Field} label="Team" onChange=${set('team')}><option value="">all</option>${teams.data?.teams.map((t) => option(t, chosen.team))}<//>`}
      <${Field} label="Model" onChange=${set('model')}><option value="">all</option>${withChosen(models.data ?? [], chosen.model).map((id) => option({ id }, chosen.model))}<//>
      <${Field} label="Outcome" onChange=${outcome}><option value="">all</option><option value="true" selected=${chosen.failed === 'true'}>failed</option>${withChosen(statuses, chosen.status).map((id) => option({ id }, chosen.status))}<//>
      <${Field} label="Costs at least" type="number" min="0" step="any" placeholder="$" value=${chosen.cost_min} onChange=${set('cost_min')} />
      <${Field} label="Tag" placeholder="name=value" value=${chosen.tag} onChange=${set('tag')} />
      <${Field} label="From" type="date" value=${chosen.since.slice(0, 10)} onChange=${set('since')} />
      <${Field} label="To" type="date" value=${chosen.until.slice(0, 10)} onChange=${set('until')} />
      ${any && html`<button type="button" onClick=${() => setQuery(Object.fromEntries(filters.map((name) => [name, ''])))}>Clear</button>`}
    </div>`;
}

const statuses = ['200', '400', '401', '403', '404', '429', '499', '500', '502', '503'];

/** What is chosen stays in a list, also when it is offered no more. @param {string[]} list @param {string} chosen */
const withChosen = (list, chosen) => (chosen && !list.includes(chosen) ? [chosen, ...list] : list);
