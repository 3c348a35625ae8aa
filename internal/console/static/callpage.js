// One call: which way it went, what it used and cost, and why.
import { Cost, Outcome } from './calltable.js';
import { count, duration, money, percent, price, time } from './format.js';
import { html } from './html.js';
import { link } from './route.js';
import { AsCurl, Badge, Card, Copy, Loaded, Page, Stat, Table, useGet } from './ui.js';
import { Waterfall } from './waterfall.js';

/** @typedef {import('../types').CallDetails} CallDetails */

/** @param {{id: string}} props */
export function One({ id }) {
  const path = '/calls/' + encodeURIComponent(id);
  return html`<${Loaded} of=${useGet(path)}>${(/** @type {CallDetails} */ c) => html`
    <${Page} title=${c.model || 'Call'} lead=${html`<span class="crumb"><a href="#/calls">Calls</a> / <span class="mono">${c.request_id}</span> <${Copy} text=${c.request_id} label="Copy the ID" /></span>`} actions=${html`<${Outcome} call=${c} />`}>
      <dl class="stats">
        <${Stat} label="Total time" value=${duration(c.total_ms)} note=${c.stream ? 'streamed' : 'in one piece'} />
        <${Stat} label="First byte" value=${duration(c.first_byte_ms)} note=${c.first_byte_ms ? 'after it came' : 'none was sent'} />
        <${Stat} label="Tokens" value=${count(c.total_tokens)} note=${c.estimated ? 'an estimate' : 'as the vendor counts'} />
        <${Stat} label="Cost" value=${money(c.cost_usd)} note=${c.cost_usd === null ? 'nobody states a price' : `${money(c.charge_usd)} to budgets`} />
      </dl>
      <${Card} title="The way it went"><${Waterfall} of=${c} /><//>
      <${Card} title="Tokens and cost"><${Tokens} of=${c} /><//>
      <div class="two">
        <${Card} title="Call"><${Facts} of=${c} /><//>
        <div class="stack">
          <${Card} title="Prompt cache"><${Cached} of=${c} /><//>
          <${Card} title="Notes"><${Notes} of=${c.notes ?? []} /><//>
          <${Card} title="Prompt and answer"><p class="note">They are not kept: a record has times, counts and costs, and nothing of what was said.</p><//>
        </div>
      </div>
      <p class="row"><a href=${link(['calls'], { key: c.key, model: c.model })}>Calls like this one</a><${AsCurl} of=${{ path }} /></p>
    <//>`}<//>`;
}

/** @param {{of: CallDetails}} props */
const Facts = ({ of: c }) => html`
  <dl class="facts">
    <dt>Time</dt><dd>${time(c.time)}</dd>
    <dt>Operation</dt><dd>${c.operation}</dd>
    <dt>Key</dt><dd><a href=${link(['keys', c.key])}>${c.key_name || c.key}</a>${c.key_name && html` <small class="mono">${c.key}</small>`}</dd>
    ${c.team && html`<dt>Team</dt><dd><a href=${link(['teams', c.team])}>${c.team_name || c.team}</a></dd>`}
    <dt>Served by</dt><dd>${c.provider ? `${c.provider}/${c.upstream_model}` : 'nobody'}</dd>
    ${c.account && html`<dt>Account</dt><dd>${c.account}</dd>`}
    ${c.service && html`<dt>Service</dt><dd>${c.service}</dd>`}
    ${c.error && html`<dt>Error</dt><dd>${c.error}</dd>`}
    <dt>Bytes</dt><dd>${count(c.bytes_in)} in, ${count(c.bytes_out)} out</dd>
    ${c.tags?.length && html`<dt>Tags</dt><dd class="badges">${c.tags.map((t) => html`<${Badge}>${t}<//>`)}</dd>`}
  </dl>`;

/** What was read from the cache, and why not. @param {{of: CallDetails}} props */
function Cached({ of: c }) {
  const read = c.cache_read_tokens;
  const written = c.cache_write_tokens + c.cache_write_1h_tokens;
  const input = c.input_tokens + read + written;
  if (c.cache_miss) return html`<p>Nothing was read, although the turn before gave reason to expect it: ${c.cache_miss}.</p>`;
  if (read || written) return html`<p>${percent(read, input)} of the prompt was read from the cache${written ? `, ${percent(written, input)} written into it` : ''}.</p>`;
  return html`<p class="note">Nothing was read or written, and nothing gave reason to expect it.</p>`;
}

const words = /** @type {Record<string, string>} */ ({
  drop: 'left out', clamp: 'brought within bounds', degrade: 'said in a weaker way', rename: 'said by another name', default: 'added',
  move: 'said at another place', assume: 'assumed', skip: 'of the answer, not passed on',
});

/** What translation did, in words. @param {{of: string[]}} props */
function Notes({ of }) {
  if (!of.length) return html`<p class="note">Nothing was left out or changed on the way.</p>`;
  return html`<dl class="facts">${of.map((n) => {
    const [what, ...rest] = n.split(':');
    return html`<dt><code>${rest.join(':') || what}</code></dt><dd>${words[what] ?? what}</dd>`;
  })}</dl>`;
}

const kinds = /** @type {[string, string, keyof CallDetails][]} */ ([
  ['input', 'Input', 'input_tokens'], ['cache_read', 'Read from the cache', 'cache_read_tokens'], ['cache_write', 'Written to the cache', 'cache_write_tokens'],
  ['cache_write_1h', 'Written for an hour', 'cache_write_1h_tokens'], ['input_audio', 'Audio in', 'input_audio_tokens'], ['output', 'Output', 'output_tokens'],
  ['reasoning', 'Reasoning', 'reasoning_tokens'], ['output_audio', 'Audio out', 'output_audio_tokens'], ['output_image', 'Images', 'output_image_tokens'], ['fees', 'Searches and fees', 'searches'],
]);

/** @param {{of: CallDetails}} props */
function Tokens({ of }) {
  const parts = new Map((of.cost_parts ?? []).map((p) => [p.kind, p]));
  const rows = kinds.filter(([kind, , name]) => of[name] || parts.has(kind) || kind === 'input' || kind === 'output').map(([kind, title, name]) => ({ kind, title, count: of[name], part: parts.get(kind) }));
  return html`
    <${Table} label="Tokens and cost" rows=${rows} id=${(/** @type {any} */ r) => r.kind} columns=${[
      { name: 'Kind', cell: (/** @type {any} */ r) => r.title },
      { name: 'Count', number: true, cell: (/** @type {any} */ r) => count(r.count) },
      ...(parts.size ? [
        { name: 'A million', number: true, cell: (/** @type {any} */ r) => (r.part?.usd_per_million === undefined ? '' : price(r.part.usd_per_million)) },
        { name: 'Cost', number: true, cell: (/** @type {any} */ r) => r.part && html`<${Cost} of=${r.part.cost_usd} />` }] : []),
    ]} />
    <dl class="facts">
      <dt>Vendors take</dt><dd><${Cost} of=${of.cost_usd} />${of.cost_usd !== null && Number(of.cost_usd) > 0 && !parts.size && html` <small>as the vendor stated, or by a price that is no longer known in parts</small>`}</dd>
      <dt>Budgets pay</dt><dd>${of.cost_usd === null && Number(of.charge_usd) === 0 ? html`<span class="unknown">nothing, the price is unknown</span>` : html`<${Cost} of=${of.charge_usd} />`}</dd>
    </dl>`;
}
