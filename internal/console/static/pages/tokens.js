// Admin tokens: for programs that use the admin API.
import { call, mayAppoint } from '../api.js';
import { ago, time } from '../format.js';
import { html, useState } from '../html.js';
import { Once } from '../once.js';
import { scopes } from '../roles.js';
import { go } from '../route.js';
import { AsCurl, Badge, Card, Code, Dialog, Empty, Field, Form, Loaded, Page, Table, Time, say, useGet } from '../ui.js';

/** @typedef {import('../../types').Token} Token */
/** @typedef {Record<string, string>} Values of a form */

/** @param {{rest: string[]}} props */
export default function Tokens({ rest }) {
  const tokens = useGet('/tokens', 10000);
  const [made, setMade] = useState(/** @type {Token|null} */ (null));
  const [ending, end] = useState(/** @type {Token|null} */ (null));
  const close = () => { setMade(null); go(['tokens']); };
  const revocation = { method: 'DELETE', path: '/tokens/' + ending?.id };
  const revoke = async () => {
    await call(revocation);
    end(null);
    say('Revoked.');
    tokens.reload();
  };
  const button = html`<a class="button primary" href="#/tokens/new">New token</a>`;
  return html`
    <${Page} title="Admin tokens" lead="For programs that look at this gateway or change it: scripts, dashboards, pipelines. No token calls a model, and none changes users or tokens."
      actions=${mayAppoint() && button}>
      <${Loaded} of=${tokens}>${(/** @type {{tokens: Token[]}} */ { tokens: all }) => (all.length === 0
        ? html`<${Empty} title="No token yet"><p>Whatever this console does, a program can do, too: each action here shows itself <q>as curl</q>. Give each program a token of its own, with no more than it needs.</p>${mayAppoint() ? button : html`<p>Owners make them.</p>`}<//>`
        : html`<${Card}><${Table} label="Admin tokens" rows=${all} id=${(/** @type {Token} */ t) => t.id} columns=${columns(end)} /><${AsCurl} of=${{ path: '/tokens' }} /><//>`)}<//>
      ${rest[0] === 'new' && mayAppoint() && !made && html`<${Create} close=${close} done=${(/** @type {Token} */ t) => { setMade(t); tokens.reload(); }} />`}
      ${made && html`
        <${Once} title=${`Token “${made.name}”`} say="This is the token." text=${made.token ?? ''} label="The new token" close=${close}>
          <p>Try it from a shell:</p>
          <${Code} label="A first question" text=${`curl '${location.origin}/api/v1${scopes[made.scopes[0]].ask}' \\\n  -H 'Authorization: Bearer ${made.token}'`} />
        <//>`}
      ${ending && html`
        <${Dialog} title=${`Revoke “${ending.name}”?`} close=${() => end(null)}>
          <p>Programs that use it are refused at once. It cannot be taken back: a new token has another secret.</p>
          <${Form} send=${revoke} label="Revoke" tone="danger" request=${() => revocation} cancel=${() => end(null)} />
        <//>`}
    <//>`;
}

/** @param {(t: Token) => void} end */
function columns(end) {
  const list = [
    { name: 'Name', cell: (/** @type {Token} */ t) => html`${t.name}<small class="mono">limen_admin_${t.id}…</small>` },
    { name: 'Scopes', cell: (/** @type {Token} */ t) => html`<div class="badges">${t.scopes.map((s) => html`<span title=${scopes[s]?.say}><${Badge}>${s}<//></span>`)}</div>` },
    { name: 'Made', cell: (/** @type {Token} */ t) => html`<${Time} at=${t.created} say=${ago(t.created)} /><small>by ${t.created_by}</small>` },
    { name: 'Expires', cell: (/** @type {Token} */ t) => (t.expired ? html`<${Badge} tone="warn">expired<//>` : t.expires ? html`<${Time} at=${t.expires} say=${ago(t.expires)} /><small>${time(t.expires)}</small>` : 'never') },
  ];
  if (!mayAppoint()) return list;
  return [...list, { name: 'Actions', cell: (/** @type {Token} */ t) => html`<div class="row"><button type="button" class="small danger" aria-label=${`Revoke ${t.name}`} onClick=${() => end(t)}>Revoke</button></div>` }];
}

const days = /** @type {[string, string][]} */ ([['30', 'in 30 days'], ['90', 'in 90 days'], ['365', 'in a year'], ['', 'never']]);

/** @param {{close: () => void, done: (made: Token) => void}} props */
function Create({ close, done }) {
  const request = (/** @type {Values} */ values) => ({
    method: 'POST', path: '/tokens',
    body: {
      name: values.name, scopes: Object.keys(scopes).filter((s) => values['scope ' + s]),
      ...(values.days ? { expires: new Date(Date.now() + Number(values.days) * 86400000).toISOString().slice(0, 19) + 'Z' } : {}),
    },
  });
  return html`
    <${Dialog} title="New token" close=${close}>
      <${Form} send=${async (/** @type {Values} */ values) => done(await call(request(values)))} label="Make the token" request=${request} cancel=${close}>
        <${Field} label="Name" name="name" required maxlength="200" autofocus placeholder="grafana" hint="Which program uses it: it stands in the audit log." />
        <fieldset class="checks-of"><legend class="label">What it may do</legend>
          ${Object.entries(scopes).map(([name, s]) => html`<label class="check"><input type="checkbox" name=${'scope ' + name} defaultChecked=${name === 'read'} /><span><strong>${name}</strong> ${s.say}</span></label>`)}
        </fieldset>
        <${Field} label="Expires" name="days">${days.map(([n, what]) => html`<option value=${n} selected=${n === '90'}>${what}</option>`)}<//>
      <//>
    <//>`;
}
