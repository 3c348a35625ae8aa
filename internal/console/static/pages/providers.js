// Providers: where models come from, and how it stands with them.
import { call, mayChange } from '../api.js';
import { ago, count } from '../format.js';
import { html, useState } from '../html.js';
import { go, link, route } from '../route.js';
import { sheet } from '../sheet.js';
import { AsCurl, Badge, Card, Dialog, Empty, Form, Loaded, Page, Problem, Table, Time, say, useGet } from '../ui.js';
import { Add, Edit } from '../providerform.js';
import { Test } from '../providertest.js';

await sheet('config.css');

/**
 * @typedef {{name: string, base_url: string, accounts: string[], speaks: string[], models: number, fetched?: string, error?: string}} Provider
 * @typedef {import('./config.js').Doc} Doc
 * @typedef {import('./models.js').Model} Model
 */

/** The provider that stands in while there is none. */
const echo = 'echo';

/** @param {{rest: string[]}} props */
export default function Providers({ rest: [name] }) {
  const providers = useGet('/providers', 5000);
  const doc = useGet('/config/document', 10000);
  const reload = () => { providers.reload(); doc.reload(); };
  return html`<${Loaded} of=${providers}>${(/** @type {{providers: Provider[]}} */ { providers: all }) => {
    const one = all.find((p) => p.name === name);
    const adding = route.value.query.get('add');
    return html`
      ${one ? html`<${One} of=${one} doc=${doc.data} reload=${reload} />`
        : name ? html`<${Empty} title="There is no such provider"><p>${name} is not set. <a href="#/providers">See which are</a></p><//>`
        : html`<${List} all=${all} />`}
      ${doc.error && html`<${Problem} error=${doc.error} retry=${doc.reload} />`}
      ${adding && mayChange() && doc.data && html`<${Add} first=${adding} doc=${doc.data} taken=${all.map((p) => p.name)} reload=${reload} close=${() => go(['providers'])} />`}`;
  }}<//>`;
}

/** @param {{of: Provider}} props */
const Health = ({ of }) => html`<${Badge} tone=${of.error ? 'bad' : 'good'}>${of.error ? 'does not answer' : 'answers'}<//>`;

/** @param {{all: Provider[]}} props */
function List({ all }) {
  const add = mayChange() && html`<a class="button primary" href=${link(['providers'], { add: 'any' })}>Add a provider</a>`;
  const ask = { method: 'POST', path: '/refresh', body: {} };
  return html`
    <${Page} title="Providers" lead="Where calls are sent: vendors with a key of yours, and servers of your own. Keys are never shown again." actions=${add}>
      ${all.every((p) => p.name === echo) && html`
        <${Empty} title="No provider yet"><p>Choose a vendor, paste a key of yours, and Limen makes a first call with it. Its models are offered at once.
          Until then the model <code>echo</code> says back what it hears.</p>${add}<//>`}
      ${all.length > 0 && html`<${Card}><${Table} label="Providers" rows=${all} id=${(p) => p.name} columns=${[
        { name: 'Provider', cell: (p) => html`<a href=${link(['providers', p.name])}>${p.name}</a><small>${p.base_url}</small>` },
        { name: 'Health', cell: (p) => html`<${Health} of=${p} />${p.error && html`<small>${p.error}</small>`}` },
        { name: 'Models', number: true, cell: (p) => html`<a href=${link(['models'], { q: p.name + '/' })}>${count(p.models)}</a>` },
        { name: 'Accounts', number: true, cell: (p) => count(p.accounts?.length ?? 1) },
        { name: 'Asked', cell: (p) => html`<${Time} at=${p.fetched} say=${ago(p.fetched)} />` },
        { name: 'Spoken to in', cell: (p) => html`<span class="note">${p.speaks.join(', ')}</span>` },
      ]} /><//>`}
      <div class="row">
        ${mayChange() && all.length > 0 && html`<button type="button" onClick=${() => call(ask).then(() => say('All providers were asked.'), (err) => say(err.message))}>Ask all for their models</button><${AsCurl} of=${ask} />`}
        ${!mayChange() && html`<${AsCurl} of=${{ path: '/providers' }} />`}
      </div>
    <//>`;
}

/** @param {{of: Provider, doc?: Doc, reload: () => void}} props */
function One({ of, doc, reload }) {
  const models = useGet('/models', 10000);
  const [open, setOpen] = useState(/** @type {''|'edit'|'remove'} */ (''));
  const close = () => setOpen('');
  const own = /** @type {{models: Model[]}|undefined} */ (models.data)?.models.filter((m) => m.targets.some((t) => t.startsWith(of.name + '/')));
  return html`
    <${Page} title=${of.name} lead=${html`<span class="crumb"><a href="#/providers">Providers</a> / ${of.base_url}</span>`}
      actions=${mayChange() && doc && of.name !== echo && html`<button type="button" onClick=${() => setOpen('edit')}>Change</button><button type="button" class="danger" onClick=${() => setOpen('remove')}>Remove</button>`}>
      <div class="two">
        <${Card} title="How it stands" aside=${html`<${Health} of=${of} />`}>
          ${of.error && html`<div class="problem"><p>${of.error}</p></div>`}
          <dl class="facts">
            <dt>Models</dt><dd><a href=${link(['models'], { q: of.name + '/' })}>${count(of.models)}</a></dd>
            <dt>Asked for them</dt><dd><${Time} at=${of.fetched} say=${ago(of.fetched)} /></dd>
            <dt>Spoken to in</dt><dd>${of.speaks.join(', ')}</dd>
          </dl>
          <p class="row"><a href=${link(['calls'], { provider: of.name })}>Its calls</a><a href=${link(['usage'], { provider: of.name })}>Its usage</a></p>
        <//>
        <${Test} provider=${of.name} models=${own?.flatMap((m) => m.targets).filter((t) => t.startsWith(of.name + '/')).map((t) => t.slice(of.name.length + 1))} change=${() => setOpen('edit')} />
      </div>
      <${Accounts} of=${of} models=${own ?? []} />
      <${AsCurl} of=${{ path: '/providers' }} />
      ${open === 'edit' && html`<${Edit} of=${of} doc=${doc} close=${close} reload=${reload} />`}
      ${open === 'remove' && html`<${Remove} of=${of} doc=${doc} models=${own ?? []} close=${close} />`}
    <//>`;
}

/** Accounts are the keys of a provider, and how it stands with each. @param {{of: Provider, models: Model[]}} props */
function Accounts({ of, models }) {
  const rows = (of.accounts ?? [of.name]).map((name) => {
    const health = models.flatMap((m) => m.health).filter((h) => h.account === name && h.target.startsWith(of.name + '/'));
    const sick = health.filter((h) => h.state !== 'ok');
    return { name, sick: new Set(sick.map((h) => h.target)), error: sick.find((h) => h.last_error)?.last_error, flight: health.reduce((n, h) => n + h.in_flight, 0) };
  });
  return html`
    <${Card} title="Accounts" aside=${html`<small>one for each key</small>`}><${Table} label="Accounts" rows=${rows} id=${(a) => a.name} columns=${[
      { name: 'Account', cell: (a) => a.name },
      { name: 'State', cell: (a) => html`<${Badge} tone=${a.sick.size ? 'warn' : 'good'}>${a.sick.size ? `${count(a.sick.size)} ${a.sick.size === 1 ? 'model' : 'models'} not well` : 'ok'}<//>${a.error && html`<small>${a.error}</small>`}` },
      { name: 'Calls under way', number: true, cell: (a) => count(a.flight) },
    ]} /><//>`;
}

/** @param {{of: Provider, doc: Doc, models: Model[], close: () => void}} props */
function Remove({ of, doc, models, close }) {
  const own = models.filter((m) => doc.document?.models?.[m.id]);
  const gone = models.filter((m) => !own.includes(m));
  const request = { method: 'DELETE', path: '/config/providers/' + encodeURIComponent(of.name) };
  return html`
    <${Dialog} title=${`Remove “${of.name}”?`} close=${close}>
      <div class="stack">
        ${own.length > 0 && html`<${Names} title="These models of yours have it for a target: change or delete them first" of=${own} />`}
        <${Names} title=${`${count(gone.length)} ${gone.length === 1 ? 'model goes' : 'models go'} with it`} of=${gone} none="No model goes with it." />
        ${doc.source === 'file'
          ? html`<p>Limen was started with <code>${doc.path}</code>: take <code>${of.name}</code> out from under <code>providers</code> there. The file is read again when it changes.</p>`
          : own.length === 0 && html`<p>Calls for them are refused at once. The version of the configuration before it can be brought back.</p>
            <${Form} send=${async () => { await call(request); say('Removed.'); go(['providers']); }} label="Remove" tone="danger" request=${() => request} cancel=${close} />`}
      </div>
    <//>`;
}

/** @param {{title: string, of: Model[], none?: string}} props */
const Names = ({ title, of, none }) => (of.length === 0 ? html`<p>${none}</p>` : html`
  <div><p><strong>${title}</strong></p><ul class="names">${of.slice(0, 12).map((m) => html`<li><a href=${link(['models', m.id])}><code>${m.id}</code></a></li>`)}</ul>${of.length > 12 && html`<p class="note">and ${count(of.length - 12)} more</p>`}</div>`);
