// @ts-nocheck
// How it stands: whether everything is set up, and what today brought.
import { get, query } from '../api.js';
import { ago, costOf, count, date, duration, percent, short, zone } from '../format.js';
import { html } from '../html.js';
import { link } from '../route.js';
import { Card, Code, Loaded, Page, Stat, useGet, useLoad } from '../ui.js';
import { CallTable } from '../calltable.js';

export default function Home() {
  const today = useLoad((signal) => get('/usage' + query({ since: date(new Date()), zone }), signal), [], 5000);
  const setup = useLoad(async (signal) => {
    const [providers, keys, calls] = await Promise.all(['/providers', '/keys', '/calls?limit=8'].map((path) => get(path, signal)));
    return { providers: providers.providers, keys: keys.keys, calls: calls.calls };
  }, [], 3000);
  return html`
    <${Page} title="Home" lead="One address for every model, and what came of it today.">
      <${Loaded} of=${today}>${(t) => html`
        <dl class="stats" aria-label="Today">
          <${Stat} label="Calls today" value=${count(t.calls)} note=${t.calls ? `${duration(t.mean_ms)} on average` : 'since midnight here'} />
          <${Stat} label="Cost" value=${t.calls ? costOf(t) : '$0'} note=${t.unpriced ? `${count(t.unpriced)} ${t.unpriced === 1 ? 'call has' : 'calls have'} no known price` : 'what vendors take'} />
          <${Stat} label="Tokens" value=${short(t.total_tokens)} note=${`${short(t.input_tokens + t.cache_read_tokens + t.cache_write_tokens)} in, ${short(t.output_tokens + t.reasoning_tokens)} out`} />
          <${Stat} label="Errors" value=${count(t.failed)} tone=${t.failed ? 'bad' : ''} note=${t.calls ? percent(t.failed, t.calls) + ' of calls' : 'none'} />
        </dl>`}<//>
      <${Loaded} of=${setup}>${(s) => html`
        <${Checklist} ...${s} />
        ${s.calls.length > 0 && html`<${Card} title="Newest calls" aside=${html`<a href="#/calls">All calls</a>`}><${CallTable} calls=${s.calls} /><//>`}`}<//>
      <${Version} />
    <//>`;
}

function Checklist({ providers, keys, calls }) {
  const good = providers.filter((p) => !p.error && p.models > 0);
  const bad = providers.filter((p) => p.error);
  const active = keys.filter((k) => k.status === 'active');
  const done = good.length > 0 && !bad.length && active.length > 0 && calls.length > 0;
  if (done) return html`<p class="row"><span><span class="light good"></span>Everything is set up: ${good.length === 1 ? `${good[0].name} answers` : `${good.length} providers answer`}, ${count(active.length)} ${active.length === 1 ? 'key' : 'keys'}, last call ${ago(calls[0].time)}.</span><a href="#/connect">Connect another client</a></p>`;
  return html`
    <${Card} title="To begin with" aside=${html`<small>this list looks for itself</small>`}>
      <ul class="checks">
        <${Check} state=${bad.length ? 'wrong' : good.length ? 'done' : ''} what=${good.length && !bad.length ? 'A provider answers' : bad.length ? `${bad.map((p) => p.name).join(', ')} ${bad.length === 1 ? 'does' : 'do'} not answer` : 'A provider answers'}>
          ${bad.length ? html`<p>${bad[0].error}</p><p><a href="#/providers">See all providers</a></p>`
            : good.length ? html`<p>${good.map((p) => `${p.name} (${count(p.models)} ${p.models === 1 ? 'model' : 'models'})`).join(', ')}</p>`
            : html`<p>Set a vendor's key, such as OPENAI_API_KEY, where Limen runs, or name a provider in limen.yaml.</p>`}
        <//>
        <${Check} state=${active.length ? 'done' : ''} what="A key is made">
          ${active.length ? html`<p>${active.slice(0, 3).map((k) => k.name).join(', ')}${active.length > 3 ? ` and ${active.length - 3} more` : ''}</p>`
            : html`<p>Clients come with a key of their own. <a href="#/keys/new">Make the first one</a></p>`}
        <//>
        <${Check} state=${calls.length ? 'done' : ''} what="The first call is seen">
          ${calls.length ? html`<p>${calls[0].model || 'A call'}, ${ago(calls[0].time)}. <a href=${link(['calls', calls[0].request_id])}>Look at it</a></p>`
            : html`<p>Set a client up with <a href="#/connect">Connect</a>, or try it from a shell:</p>
              <${Code} label="A first call" text=${`curl ${location.origin}/v1/models -H "Authorization: Bearer $LIMEN_KEY"`} />`}
        <//>
      </ul>
    <//>`;
}

const Check = ({ state, what, children }) => html`
  <li class=${state}><span class="tick" aria-hidden="true">${state === 'wrong' ? '!' : '✓'}</span>
    <div><strong>${what}</strong><span class="away">${state === 'done' ? ', done' : state === 'wrong' ? ', needs attention' : ', not yet'}</span>${children}</div></li>`;

function Version() {
  const status = useGet('/status', 10000);
  return html`<${Loaded} of=${status}>${(s) => html`<p class="note">Limen ${s.version}${s.usage_records_pending ? ` · ${count(s.usage_records_pending)} records wait for the store` : ''}</p>`}<//>`;
}
