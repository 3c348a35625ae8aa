// Keys: who may call, and how much.
import { call, mayChange, secrets, seesAll } from '../api.js';
import { ago, time } from '../format.js';
import { html, useState } from '../html.js';
import { go, link, route } from '../route.js';
import { AsCurl, Badge, Card, Code, Dialog, Empty, Field, Form, Loaded, Page, Table, Time, say, useGet } from '../ui.js';
import { Budgets, Limits, TermFields, list, terms, without } from '../terms.js';

/** @typedef {import('../../types').Key} Key */
/** @typedef {Record<string, string>} Values of a form */

/** @param {{rest: string[]}} props */
export default function Keys({ rest }) {
  if (rest[0] === 'new') return html`<${List} creating />`;
  return rest[0] ? html`<${One} id=${rest[0]} />` : html`<${List} />`;
}

const tones = { active: 'good', revoked: 'bad', expired: 'warn' };
/** @param {{of: Key}} props */
const Status = ({ of }) => html`<${Badge} tone=${tones[of.status]}>${of.status}<//>`;

function List({ creating = false }) {
  const keys = useGet('/keys', 10000);
  const made = useState(/** @type {Key|null} */ (null));
  const close = () => { made[1](null); go(['keys']); };
  return html`
    <${Page} title="Keys" lead="Each client, person or service has a key of its own: so each can be bounded, and taken away alone."
      actions=${mayChange() && html`<a class="button primary" href="#/keys/new">New key</a>`}>
      <${Loaded} of=${keys}>${({ keys: all }) => (all.length === 0
        ? html`<${Empty} title="No key yet"><p>A client shows its key with every call${mayChange() ? ': make one, give it to a client' : ''}, and its calls appear under <a href="#/calls">Calls</a>.</p>${mayChange() && html`<a class="button primary" href="#/keys/new">New key</a>`}<//>`
        : html`<${Card}><${Table} label="Keys" rows=${all} id=${(k) => k.id} columns=${[
            { name: 'Name', cell: (k) => html`<a href=${link(['keys', k.id])}>${k.name}</a><small class="mono">${k.prefix}${k.id}…</small>` },
            { name: 'Status', cell: (k) => html`<${Status} of=${k} />` },
            { name: 'Team', cell: (k) => (k.team ? html`<a href=${link(['teams', k.team])}>${k.team}</a>` : html`<span class="note">none</span>`) },
            { name: 'Budgets', cell: (k) => html`<${Budgets} of=${k.budgets} />` },
            { name: 'Limits', cell: (k) => html`<${Limits} of=${k.limits} />` },
            { name: 'Last used', cell: (k) => html`<${Time} at=${k.last_used} say=${ago(k.last_used)} />` },
          ]} /><//>`)}<//>
      ${creating && mayChange() && (made[0] ? html`<${Secret} of=${made[0]} close=${close} />` : html`<${Create} close=${close} done=${(k) => { secrets.set(k.id, k.key); made[1](k); keys.reload(); }} />`)}
    <//>`;
}

/** What is asked of the admin API for a new key. @param {Record<string, string>} values */
const newKey = (values) => without({
  name: values.name, team: values.team, owner: values.owner, ...terms(values), models: list(values.models), operations: list(values.operations),
  expires: values.expires && new Date(values.expires + 'T00:00:00').toISOString(), strict: values.strict === 'on', no_store: values.no_store === 'on',
});

/** @param {{close: () => void, done: (made: Key) => void}} props */
function Create({ close, done }) {
  const teams = useGet('/teams');
  const request = (/** @type {Values} */ values) => ({ method: 'POST', path: '/keys', body: newKey(values) });
  return html`
    <${Dialog} title="New key" close=${close}>
      <${Loaded} of=${teams}>${(/** @type {import('../../types').TeamList} */ t) => html`
        <${Form} send=${async (values) => done(await call(request(values)))} label="Make the key" request=${request} cancel=${close}>
          <${Field} label="Name" name="name" required maxlength="200" autofocus placeholder="alice, ci, support-bot" value=${route.value.query.get('name') ?? ''} hint="Who or what calls with it." />
          ${t.teams.length > 0 && html`<${Field} label="Team" name="team"><option value="">none</option>${t.teams.map((team) => html`<option value=${team.name} selected=${team.name === route.value.query.get('team')}>${team.name}</option>`)}<//>`}
          <details><summary>Budgets and limits</summary><div class="stack"><${TermFields} /></div></details>
          <details><summary>What it may do, and until when</summary><div class="stack"><${UseFields} /></div></details>
        <//>`}<//>
    <//>`;
}

const UseFields = ({ of = /** @type {Partial<Key>} */ ({}) }) => html`
  <${Field} label="Models" name="models" placeholder="all" value=${(of.models ?? []).join(', ')} hint="Patterns such as claude-*, with commas between them." />
  <${Field} label="Operations" name="operations" placeholder="all" value=${(of.operations ?? []).join(', ')} hint="Of models, chat, responses and messages." />
  <div class="fields">
    <${Field} label="Owner" name="owner" maxlength="200" placeholder="nobody" value=${of.owner ?? ''} />
    <${Field} label="Expires" name="expires" type="date" value=${(of.expires ?? '').slice(0, 10)} />
  </div>
  <label class="check"><input type="checkbox" name="strict" defaultChecked=${of.strict} /><span>Refuse calls that an upstream cannot take as they are written</span></label>
  <label class="check"><input type="checkbox" name="no_store" defaultChecked=${of.no_store} /><span>Keep nothing of its calls but their records</span></label>`;

/** @param {{of: Key, close: () => void}} props */
function Secret({ of, close }) {
  return html`
    <${Dialog} title=${`Key “${of.name}”`} close=${close}>
      <div class="stack">
        <p>This is the key. It is shown this once: Limen keeps only a hash of it.</p>
        <div class="code secret"><${Code} text=${of.key} label="The new key" /></div>
        <div class="row"><a class="button primary" href=${link(['connect'], { key: of.id })}>Connect a client with it</a><button type="button" onClick=${close}>Done</button></div>
      </div>
    <//>`;
}

/** @param {{id: string}} props */
function One({ id }) {
  const path = /** @type {const} */ (`/keys/${encodeURIComponent(id)}`);
  const key = useGet(path, 5000);
  const [open, setOpen] = useState(/** @type {''|'edit'|'rotate'|'revoke'|'restore'} */ (''));
  const [fresh, setFresh] = useState(/** @type {Key|null} */ (null));
  const close = () => setOpen('');
  const after = (/** @type {string} */ text) => { close(); say(text); key.reload(); };
  const restore = { method: 'POST', path: path + '/restore' };
  return html`<${Loaded} of=${key}>${(/** @type {Key} */ k) => html`
    <${Page} title=${k.name} lead=${html`<span class="crumb"><a href="#/keys">Keys</a> / <span class="mono">${k.prefix}${k.id}…</span></span>`}
      actions=${mayChange() && html`
        <button type="button" onClick=${() => setOpen('edit')}>Change</button>
        ${k.status !== 'revoked' && html`<button type="button" onClick=${() => setOpen('rotate')}>Rotate</button>`}
        ${k.status === 'revoked' ? html`<button type="button" onClick=${() => setOpen('restore')}>Restore</button>` : html`<button type="button" class="danger" onClick=${() => setOpen('revoke')}>Revoke</button>`}`}>
      <div class="two">
        <${Card} title="Budgets"><${Budgets} of=${k.budgets} none=${html`<p class="note">This key may spend without end${k.team ? ', within what its team may' : ''}.</p>`} /><//>
        <${Card} title="Key">
          <dl class="facts">
            <dt>Status</dt><dd><${Status} of=${k} /></dd>
            <dt>Last used</dt><dd><${Time} at=${k.last_used} say=${ago(k.last_used)} /></dd>
            <dt>Limits</dt><dd><${Limits} of=${k.limits} /></dd>
            <dt>Team</dt><dd>${k.team ? html`<a href=${link(['teams', k.team])}>${k.team}</a>` : 'none'}</dd>
            <dt>Models</dt><dd>${k.models.length ? k.models.join(', ') : 'all'}</dd>
            <dt>Operations</dt><dd>${k.operations.length ? k.operations.join(', ') : 'all'}</dd>
            ${k.owner && html`<dt>Owner</dt><dd>${k.owner}</dd>`}
            ${k.strict && html`<dt>Strict</dt><dd>what cannot be said as written is refused</dd>`}
            ${k.no_store && html`<dt>Kept</dt><dd>only records</dd>`}
            <dt>Created</dt><dd>${time(k.created)}</dd>
            ${k.expires && html`<dt>Expires</dt><dd>${time(k.expires)}</dd>`}
            ${k.revoked && html`<dt>Revoked</dt><dd>${time(k.revoked)}</dd>`}
            ${k.replaced_key_until && html`<dt>The key before</dt><dd>works until ${time(k.replaced_key_until)}</dd>`}
            <dt>ID</dt><dd class="mono">${k.id}</dd>
          </dl>
        <//>
      </div>
      <p class="row"><a href=${link(['calls'], { key: k.id })}>Its calls</a><a href=${link(['usage'], { key: k.id })}>Its usage</a>${seesAll() && html`<a href=${link(['connect'], { key: k.id })}>Connect a client with it</a>`}</p>
      <${AsCurl} of=${{ path }} />
      ${open === 'edit' && html`<${Change} of=${k} path=${path} close=${close} done=${() => after('Changed.')} />`}
      ${open === 'rotate' && html`<${Rotate} of=${k} path=${path} close=${close} done=${(made) => { secrets.set(made.id, made.key); setFresh(made); after('Rotated.'); }} />`}
      ${open === 'revoke' && html`
        <${Dialog} title=${`Revoke “${k.name}”?`} close=${close}>
          <p>Its calls are refused at once. It can be restored.</p>
          <${Form} send=${async () => { await call({ method: 'POST', path: path + '/revoke' }); after('Revoked.'); }} label="Revoke" tone="danger" request=${() => ({ method: 'POST', path: path + '/revoke' })} cancel=${close} />
        <//>`}
      ${open === 'restore' && html`
        <${Dialog} title=${`Restore “${k.name}”?`} close=${close}>
          <p>The secret that clients have works again at once.</p>
          <${Form} send=${async () => { await call(restore); after('The key works again.'); }} label="Restore" request=${() => restore} cancel=${close} />
        <//>`}
      ${fresh && html`<${Secret} of=${fresh} close=${() => setFresh(null)} />`}
    <//>`}<//>`;
}

/** @param {{of: Key, path: string, close: () => void, done: () => void}} props */
function Change({ of, path, close, done }) {
  const teams = useGet('/teams');
  const request = (/** @type {Values} */ values) => ({
    method: 'PATCH', path,
    body: {
      name: values.name, owner: values.owner, team: values.team || null, ...terms(values), models: list(values.models), operations: list(values.operations),
      expires: values.expires === (of.expires ?? '').slice(0, 10) ? of.expires ?? null : values.expires ? new Date(values.expires + 'T00:00:00').toISOString() : null,
      strict: values.strict === 'on', no_store: values.no_store === 'on',
    },
  });
  return html`
    <${Dialog} title=${`Change “${of.name}”`} close=${close}>
      <${Loaded} of=${teams}>${(/** @type {import('../../types').TeamList} */ t) => html`
        <${Form} send=${async (values) => { await call(request(values)); done(); }} label="Change" request=${request} cancel=${close}>
          <${Field} label="Name" name="name" required maxlength="200" value=${of.name} />
          <${Field} label="Team" name="team"><option value="">none</option>${t.teams.map((team) => html`<option value=${team.name} selected=${team.name === of.team}>${team.name}</option>`)}<//>
          <${TermFields} budgets=${of.budgets} limits=${of.limits} />
          <${UseFields} of=${of} />
        <//>`}<//>
    <//>`;
}

/** @param {{of: Key, path: string, close: () => void, done: (made: Key) => void}} props */
function Rotate({ of, path, close, done }) {
  const request = (/** @type {Values} */ values) => ({ method: 'POST', path: path + '/rotate', body: values.overlap ? { overlap: values.overlap } : {} });
  return html`
    <${Dialog} title=${`Rotate “${of.name}”`} close=${close}>
      <p>The key gets a new secret; its name, budgets and records stay.</p>
      <${Form} send=${async (values) => done(await call(request(values)))} label="Rotate" request=${request} cancel=${close}>
        <${Field} label="The old secret works on for" name="overlap"><option value="">not at all</option><option value="1h">an hour</option><option value="24h" selected>a day</option><option value="168h">a week</option><//>
      <//>
    <//>`;
}
