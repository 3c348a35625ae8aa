// @ts-nocheck
// Calls: the newest first, and each by itself.
import { get, query } from '../api.js';
import { CallTable, Cost, Outcome } from '../calltable.js';
import { count, duration, money, time } from '../format.js';
import { html, useEffect, useState } from '../html.js';
import { link, route, setQuery } from '../route.js';
import { AsCurl, Badge, Card, Empty, Field, Loaded, Page, Problem, useGet } from '../ui.js';

export default function Calls({ rest }) {
  return rest[0] ? html`<${One} id=${rest[0]} />` : html`<${List} />`;
}

const filters = ['key', 'team', 'model', 'provider', 'tag', 'status', 'failed', 'cost_min', 'since', 'until'];
const page = 50;

function List() {
  const q = route.value.query;
  const chosen = Object.fromEntries(filters.map((name) => [name, q.get(name) ?? '']));
  const asked = query(chosen);
  const live = q.get('live') !== 'off';
  const [calls, setCalls] = useState(/** @type {import('../calltable.js').Call[]|null} */ (null));
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
          const d = await get('/calls' + query({ ...chosen, limit: page }), leave.signal);
          setError(null);
          if (first) setNext(d.next ?? '');
          first = false;
          // What is new goes before what is shown, unless more came than one answer holds.
          setCalls((old) => {
            const at = d.calls.findIndex((c) => c.request_id === old?.[0]?.request_id);
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
      const d = await get('/calls' + query({ ...chosen, limit: page, before: next }));
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
        ${next && calls?.length && html`<button type="button" onClick=${more}>Older calls</button>`}
        ${calls?.length && html`<a href=${'/api/v1/usage/export' + query({ ...chosen, format: 'csv' })} download="calls.csv">CSV</a>`}
        <${AsCurl} of=${{ path: '/calls' + query({ ...chosen, limit: page }) }} />
      </div>
    <//>`;
}

function Filters({ chosen }) {
  const keys = useGet('/keys');
  const teams = useGet('/teams');
  const models = useGet('/models');
  const set = (/** @type {string} */ name) => (e) => setQuery({ [name]: e.currentTarget.value });
  const any = filters.some((name) => chosen[name]);
  return html`
    <div class="filters" role="group" aria-label="Filters">
      <${Field} label="Key" onChange=${set('key')}><option value="">all</option>${(keys.data?.keys ?? []).map((k) => html`<option value=${k.id} selected=${k.id === chosen.key || k.name === chosen.key}>${k.name}</option>`)}<//>
      ${teams.data?.teams.length > 0 && html`<${Field} label="Team" onChange=${set('team')}><option value="">all</option>${teams.data.teams.map((t) => html`<option value=${t.id} selected=${t.id === chosen.team || t.name === chosen.team}>${t.name}</option>`)}<//>`}
      <${Field} label="Model" onChange=${set('model')}><option value="">all</option>${withChosen((models.data?.models ?? []).map((m) => m.id), chosen.model).map((id) => html`<option value=${id} selected=${id === chosen.model}>${id}</option>`)}<//>
      <${Field} label="Outcome" onChange=${set('failed')}><option value="">all</option><option value="true" selected=${chosen.failed === 'true'}>failed</option><//>
      <${Field} label="Tag" placeholder="name=value" value=${chosen.tag} onChange=${set('tag')} />
      <${Field} label="Since" type="date" value=${chosen.since.slice(0, 10)} onChange=${set('since')} />
      ${any && html`<button type="button" onClick=${() => setQuery(Object.fromEntries(filters.map((name) => [name, ''])))}>Clear</button>`}
    </div>`;
}

/** What is chosen stays in a list, also when it is offered no more. @param {string[]} list @param {string} chosen */
const withChosen = (list, chosen) => (chosen && !list.includes(chosen) ? [chosen, ...list] : list);

function One({ id }) {
  const path = '/calls/' + encodeURIComponent(id);
  return html`<${Loaded} of=${useGet(path)}>${(/** @type {any} */ c) => html`
    <${Page} title=${c.model || 'Call'} lead=${html`<span class="crumb"><a href="#/calls">Calls</a> / <span class="mono">${c.request_id}</span></span>`} actions=${html`<${Outcome} call=${c} />`}>
      <dl class="stats">
        <div class="stat"><dt>Total time</dt><dd>${duration(c.total_ms)}</dd><dd class="note">${c.stream ? 'streamed' : 'in one piece'}</dd></div>
        <div class="stat"><dt>First byte</dt><dd>${duration(c.first_byte_ms)}</dd><dd class="note">${c.first_byte_ms ? 'after it came' : 'none was sent'}</dd></div>
        <div class="stat"><dt>Tokens</dt><dd>${count(c.total_tokens)}</dd><dd class="note">${c.estimated ? 'an estimate' : 'as the vendor counts'}</dd></div>
        <div class="stat"><dt>Cost</dt><dd>${money(c.cost_usd)}</dd><dd class="note">${c.cost_usd === null ? 'nobody states a price' : `${money(c.charge_usd)} to budgets`}</dd></div>
      </dl>
      <${Card} title="The way it went"><${Way} of=${c} /><//>
      <div class="two">
        <${Card} title="Call">
          <dl class="facts">
            <dt>Time</dt><dd>${time(c.time)}</dd>
            <dt>Operation</dt><dd>${c.operation}</dd>
            <dt>Key</dt><dd><a href=${link(['keys', c.key])}>${c.key_name || c.key}</a></dd>
            ${c.team && html`<dt>Team</dt><dd><a href=${link(['teams', c.team])}>${c.team_name || c.team}</a></dd>`}
            <dt>Served by</dt><dd>${c.provider ? `${c.provider}/${c.upstream_model}` : 'nobody'}</dd>
            ${c.account && html`<dt>Account</dt><dd>${c.account}</dd>`}
            ${c.service && html`<dt>Service</dt><dd>${c.service}</dd>`}
            ${c.error && html`<dt>Error</dt><dd>${c.error}</dd>`}
            <dt>Bytes</dt><dd>${count(c.bytes_in)} in, ${count(c.bytes_out)} out</dd>
            ${c.tags?.length > 0 && html`<dt>Tags</dt><dd class="badges">${c.tags.map((t) => html`<${Badge}>${t}<//>`)}</dd>`}
            ${c.cache_miss && html`<dt>Cache not read</dt><dd>${c.cache_miss}</dd>`}
          </dl>
        <//>
        <${Card} title="Tokens and cost"><${Tokens} of=${c} /><//>
        <${Card} title="Notes">
          ${c.notes?.length ? html`<p class="note">What was changed on the way to the upstream:</p><ul>${c.notes.map((n) => html`<li><code>${n}</code></li>`)}</ul>` : html`<p class="note">Nothing was left out or changed on the way.</p>`}
        <//>
      </div>
      <p class="row"><a href=${link(['calls'], { key: c.key, model: c.model })}>Calls like this one</a><${AsCurl} of=${{ path }} /></p>
    <//>`}<//>`;
}

const kinds = [
  ['input_tokens', 'Input'], ['cache_read_tokens', 'Read from the cache'], ['cache_write_tokens', 'Written to the cache'], ['cache_write_1h_tokens', 'Written for an hour'], ['input_audio_tokens', 'Audio in'],
  ['output_tokens', 'Output'], ['reasoning_tokens', 'Reasoning'], ['output_audio_tokens', 'Audio out'], ['output_image_tokens', 'Images'], ['searches', 'Searches'],
];

const Tokens = ({ of }) => html`
  <dl class="facts">
    ${kinds.filter(([name]) => of[name] || name === 'input_tokens' || name === 'output_tokens').map(([name, title]) => html`<dt>${title}</dt><dd>${count(of[name])}</dd>`)}
    <dt>Vendors take</dt><dd><${Cost} of=${of.cost_usd} /></dd>
    <dt>Budgets pay</dt><dd>${of.cost_usd === null ? html`<span class="unknown">nothing, the price is unknown</span>` : html`<span title=${'$' + of.charge_usd}>${money(of.charge_usd)}</span>`}</dd>
  </dl>`;

/** The attempts, as bars over the time of the call. */
function Way({ of }) {
  const steps = of.steps?.length ? of.steps : of.provider ? [{ target: `${of.provider}/${of.upstream_model}`, account: of.account, result: of.error || 'ok', tried: true, at_ms: 0, took_ms: of.first_byte_ms || of.total_ms }] : [];
  if (!steps.length) return html`<p class="note">It was refused before any upstream was asked${of.error ? `: ${of.error}` : ''}.</p>`;
  const whole = Math.max(of.total_ms, ...steps.map((s) => s.at_ms + (s.took_ms ?? 0)), 0.001);
  const x = (/** @type {number} */ ms) => `${Math.min(100, ms / whole * 100)}%`;
  return html`
    <p class="note">${why(of, steps)}</p>
    <ol class="falls">${steps.map((s) => {
      const ok = s.result === 'ok';
      const took = s.took_ms ?? 0;
      return html`
        <li class=${!s.tried ? 'skipped' : ok ? 'ok' : 'failed'}>
          <div><strong>${s.target}</strong><br /><small>${s.account}</small></div>
          <svg role="img" aria-label=${s.tried ? `from ${duration(s.at_ms)}, for ${duration(took)}` : 'not asked'} preserveAspectRatio="none">
            ${s.tried && html`<rect x=${x(s.at_ms)} width=${x(Math.max(took, whole / 200))} height="100%" rx="3" />`}
            ${s.tried && ok && html`<rect class="rest" x=${x(s.at_ms + took)} width=${x(Math.max(0, whole - s.at_ms - took))} height="100%" />`}
          </svg>
          <p class="result note">${s.tried ? (ok ? `answered after ${duration(took || 0.1)}, done at ${duration(of.total_ms)}` : `${s.result}, after ${duration(took)}`) : `not asked: ${s.result}`}</p>
        </li>`;
    })}</ol>`;
}

function why(of, steps) {
  const tried = steps.filter((s) => s.tried);
  const left = steps.length - tried.length;
  const others = left ? ` ${left === 1 ? 'One target was' : `${left} targets were`} not asked.` : '';
  if (!tried.length) return 'No target could serve it.' + others;
  const last = tried[tried.length - 1];
  if (last.result !== 'ok') return `${tried.length === 1 ? 'Its one attempt' : `All ${tried.length} attempts`} failed.` + others;
  return (tried.length === 1 ? 'The first target answered.' : `Answered at attempt ${tried.length}: ${tried.slice(0, -1).map((s) => `${s.target} said ${s.result}`).join(', ')}.`) + others;
}
