// Models: what is offered, what it costs, and who serves it.
import { call, mayChange } from '../api.js';
import { ago, count, duration, price, short } from '../format.js';
import { html, useState } from '../html.js';
import { go, link, route, setQuery } from '../route.js';
import { sheet } from '../sheet.js';
import { AsCurl, Badge, Card, Dialog, Empty, Field, Form, Loaded, Page, Table, say, useGet } from '../ui.js';
import { ModelForm, pathOf } from '../modelform.js';

await sheet('config.css');

/**
 * @typedef {{target: string, account: string, state: string, until?: string, last_error?: string, failed?: string, in_flight: number, first_token_ms?: number, calls: number, error_rate: number}} Health
 * @typedef {{id: string, targets: string[], visible_to?: string[], context?: number, max_output?: number, speaks: string[], usd_per_million_tokens?: Record<string, any>, abilities?: Record<string, boolean>, health: Health[]}} Model
 * @typedef {import('./config.js').Doc} Doc
 */

/** @param {{rest: string[]}} props */
export default function Models({ rest }) {
  const models = useGet('/models', 5000);
  const wanted = (route.value.query.get('q') ?? '').toLowerCase();
  return html`<${Loaded} of=${models}>${(/** @type {{models: Model[], facts: any}} */ d) => {
    const id = rest.join('/');
    const one = id && d.models.find((m) => m.id === id);
    if (one) return html`<${One} of=${one} all=${d.models} reload=${models.reload} />`;
    if (id) return html`<${Empty} title="There is no such model"><p>${id} is not offered. <a href="#/models">See what is</a></p><//>`;
    const shown = d.models.filter((m) => m.id.toLowerCase().includes(wanted));
    return html`
      <${Page} title="Models" lead="What clients can ask for: the models of your providers, and names of your own with several of them behind each."
        actions=${mayChange() && html`
          <button type="button" onClick=${() => call({ method: 'POST', path: '/refresh', body: {} }).then(() => { say('All providers were asked.'); models.reload(); }, (err) => say(err.message))}>Ask providers again</button>
          <a class="button primary" href=${link(['models'], { add: 'any' })}>Make a model</a>`}>
        ${d.models.length === 0 ? html`<${Empty} title="No model yet"><p>Models come from providers. <a href="#/providers">See how they are doing</a></p>${mayChange() && html`<a class="button primary" href=${link(['providers'], { add: 'any' })}>Add a provider</a>`}<//>` : html`
          <div class="filters"><${Field} label="Find" type="search" placeholder="part of a name" value=${wanted} onInput=${(e) => setQuery({ q: e.currentTarget.value })} /><small>${count(shown.length)} of ${count(d.models.length)}</small></div>
          <${Card}><${Table} label="Models" rows=${shown.slice(0, 200)} id=${(m) => m.id} columns=${[
            { name: 'Model', cell: (m) => html`<a href=${link(['models', m.id])}>${m.id}</a>${m.targets.join() !== m.id && html`<small>${m.targets.join(', ')}</small>`}` },
            { name: 'Health', cell: (m) => html`<${Lights} of=${m.health} />` },
            { name: 'Can', cell: (m) => html`<${Can} of=${m.abilities} />` },
            { name: 'Input / M', number: true, cell: (m) => html`<${Price} of=${m.usd_per_million_tokens?.input} />` },
            { name: 'Output / M', number: true, cell: (m) => html`<${Price} of=${m.usd_per_million_tokens?.output} />` },
            { name: 'Context', number: true, cell: (m) => (m.context ? html`<span title=${count(m.context)}>${short(m.context)}</span>` : html`<span class="unknown">unknown</span>`) },
            { name: 'Spoken to in', cell: (m) => html`<span class="note">${m.speaks.join(', ')}</span>` },
          ]} /><//>
          ${shown.length > 200 && html`<p class="note">The first 200 are shown; find the others by name.</p>`}`}
        <div class="row"><small>Prices in dollars for a million tokens, by ${d.facts.source} of ${d.facts.date}, vendors and the configuration.</small><${AsCurl} of=${{ path: '/models' }} /></div>
        ${route.value.query.get('add') && mayChange() && html`<${Make} all=${d.models} reload=${models.reload} />`}
      <//>`;
  }}<//>`;
}

/** What a model may be known to do, and what it is called. */
const abilities = /** @type {[string, string][]} */ ([['tools', 'tools'], ['vision', 'images'], ['structured', 'JSON schemas'], ['reasoning', 'reasoning']]);

/** @param {{of?: Record<string, boolean>}} props */
function Can({ of = {} }) {
  const can = abilities.filter(([name]) => of[name]).map(([, title]) => title);
  if (can.length) return html`<span class="note">${can.join(', ')}</span>`;
  return abilities.some(([name]) => of[name] === undefined) ? html`<span class="unknown">unknown</span>` : html`<span class="note">text alone</span>`;
}

/** @param {{all: Model[], reload: () => void}} props */
function Make({ all, reload }) {
  const doc = useGet('/config/document');
  const close = () => go(['models']);
  return html`<${Dialog} title="Make a model" close=${close} wide>
    <${Loaded} of=${doc}>${(/** @type {Doc} */ d) => html`<${ModelForm} all=${all} doc=${d} close=${close} done=${(/** @type {string} */ id) => { say(`${id} is offered.`); reload(); go(['models', id]); }} />`}<//>
  <//>`;
}

/** @param {{of: Model, all: Model[], what: 'change'|'delete', doc: Doc, close: () => void, reload: () => void}} props */
function Own({ of, all, what, doc, close, reload }) {
  const request = { method: 'DELETE', path: pathOf(of.id) };
  return html`<${Dialog} title=${what === 'change' ? `Change “${of.id}”` : `Delete “${of.id}”?`} close=${close} wide=${what === 'change'}>
    ${what === 'change' ? html`<${ModelForm} id=${of.id} settings=${doc.document?.models?.[of.id]} all=${all} doc=${doc} close=${close} done=${() => { say('Changed.'); reload(); close(); }} />`
      : doc.source === 'file' ? html`<p>Limen was started with <code>${doc.path}</code>: take <code>${of.id}</code> out from under <code>models</code> there. The file is read again when it changes.</p>`
      : html`<div class="stack"><p>Calls for it are refused at once; its targets stay. The version of the configuration before it can be brought back.</p>
          <${Form} send=${async () => { await call(request); say('Deleted.'); go(['models']); }} label="Delete" tone="danger" request=${() => request} cancel=${close} /></div>`}
  <//>`;
}

/** @param {{of?: any}} props */
const Price = ({ of }) => (of === undefined || of === null ? html`<span class="unknown">unknown</span>` : price(of));

const tones = /** @type {Record<string, string>} */ ({ ok: 'good', probing: 'warn', cooling: 'bad' });
const tone = (/** @type {string} */ state) => tones[state] ?? 'warn';

/** @param {{of: Health[]}} props */
function Lights({ of }) {
  const bad = of.filter((h) => h.state !== 'ok');
  if (!bad.length) return html`<${Badge} tone="good">ok<//>`;
  return html`<${Badge} tone=${bad.length === of.length ? 'bad' : 'warn'}>${of.length - bad.length} of ${of.length} ok<//>`;
}

const prices = [
  ['input', 'Input'], ['output', 'Output'], ['cache_read', 'Read from the cache'], ['cache_write', 'Written to the cache'], ['cache_write_1h', 'Written for an hour'],
  ['reasoning', 'Reasoning'], ['input_audio', 'Audio in'], ['output_audio', 'Audio out'], ['output_image', 'Images'],
];
const fees = [['call', 'Each call'], ['search', 'Each search'], ['searched', 'A call that searches']];

/** @param {{of: Model, all: Model[], reload: () => void}} props */
function One({ of, all, reload }) {
  const config = useGet('/config/document', 10000);
  const [open, setOpen] = useState(/** @type {''|'change'|'delete'} */ (''));
  const doc = /** @type {Doc|undefined} */ (config.data);
  const list = of.usd_per_million_tokens ?? {};
  const body = { model: of.id };
  return html`
    <${Page} title=${of.id} lead=${html`<span class="crumb"><a href="#/models">Models</a></span>`} actions=${html`<a class="button" href=${link(['connect'], { model: of.id })}>Connect a client</a><a class="button" href=${link(['playground'], { model: of.id })}>Try it</a>
      ${doc?.document?.models?.[of.id] && mayChange() && html`<button type="button" onClick=${() => setOpen('change')}>Change</button><button type="button" class="danger" onClick=${() => setOpen('delete')}>Delete</button>`}`}>
      <div class="two">
        <${Card} title="Price" aside=${html`<small>dollars for a million tokens</small>`}>
          <dl class="facts">${prices.filter(([name]) => list[name] !== undefined || name === 'input' || name === 'output').map(([name, title]) => html`<dt>${title}</dt><dd><${Price} of=${list[name]} /></dd>`)}
            ${fees.filter(([name]) => list[name] !== undefined && list[name] !== null).map(([name, title]) => html`<dt>${title}</dt><dd>${price(list[name])}</dd>`)}</dl>
          ${list.input === undefined && html`<p class="note">Nobody states a price for this model. What it costs is recorded as unknown, not as nothing; state it under <code>prices</code> in the <a href="#/config">configuration</a>.</p>`}
          ${list.tiers?.length > 0 && html`<p class="note">Long prompts have other prices.</p>`}
        <//>
        <${Card} title="Model">
          <dl class="facts">
            <dt>Context</dt><dd>${of.context ? count(of.context) + ' tokens' : 'unknown'}</dd>
            <dt>Longest answer</dt><dd>${of.max_output ? count(of.max_output) + ' tokens' : 'unknown'}</dd>
            <dt>Spoken to in</dt><dd>${of.speaks.join(', ')}</dd>
            <dt>Can</dt><dd><ul class="badges">${abilities.map(([name, title]) => html`<li><${Badge} tone=${of.abilities?.[name] ? 'good' : 'plain'}>${of.abilities?.[name] === false ? 'no ' : ''}${title}${of.abilities?.[name] === undefined ? ': unknown' : ''}<//></li>`)}</ul></dd>
            <dt>Seen by</dt><dd>${of.visible_to?.length ? of.visible_to.join(', ') : 'all keys'}</dd>
          </dl>
        <//>
      </div>
      <${Card} title="Targets"><${Table} label="Targets" rows=${of.health} id=${(h) => h.target + ' ' + h.account} columns=${[
        { name: 'Target', cell: (h) => html`${h.target}<small>${h.account}</small>` },
        { name: 'State', cell: (h) => html`<${Badge} tone=${tone(h.state)}>${h.state}<//>${h.last_error && html`<small>${h.last_error}${h.failed ? `, ${ago(h.failed)}` : ''}</small>`}` },
        { name: 'Under way', number: true, cell: (h) => count(h.in_flight) },
        { name: 'First token', number: true, cell: (h) => duration(h.first_token_ms) },
        { name: 'Calls, 10 s', number: true, cell: (h) => count(h.calls) },
      ]} /><//>
      <p class="row"><a href=${link(['calls'], { model: of.id })}>Its calls</a><a href=${link(['usage'], { model: of.id })}>Its usage</a></p>
      <div class="row"><small>Where a call would go, without making it:</small><${AsCurl} of=${{ method: 'POST', path: '/route', body }} /></div>
      ${open && html`<${Own} of=${of} all=${all} what=${open} doc=${doc} close=${() => setOpen('')} reload=${() => { reload(); config.reload(); }} />`}
    <//>`;
}
