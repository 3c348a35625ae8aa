// Audit: who changed what, newest first.
import { get, query } from '../api.js';
import { ago } from '../format.js';
import { html, useState } from '../html.js';
import { route, setQuery } from '../route.js';
import { AsCurl, Badge, Card, Empty, Field, Loaded, Page, Problem, Table, Time, useLoad } from '../ui.js';

/** @typedef {import('../../types').Change} Change */

const filters = ['who', 'on', 'object', 'failed'];
const things = { session: 'logins and passwords', keys: 'keys', teams: 'teams', users: 'users', tokens: 'admin tokens', config: 'the configuration', providers: 'providers', prices: 'prices', refresh: 'facts about models', admin: 'the admin password' };
const page = 50;

/** deed is what an operation did, in words. @param {Change} c */
export function deed({ operation, status = 0 }) {
  const [method, path] = operation.split(' ');
  const parts = path.split('/').filter(Boolean);
  const last = parts[parts.length - 1];
  const verb = { POST: 'made', PATCH: 'changed', PUT: 'set', DELETE: 'deleted', GET: 'used' }[method] ?? method;
  const known = /** @type {Record<string, string>} */ ({
    'POST /session': status === 401 ? 'failed to log in' : 'logged in', 'DELETE /session': 'logged out', 'POST /session/password': 'changed the own password',
    'DELETE /sessions/{session}': 'ended a session', 'DELETE /tokens/{token}': 'revoked a token', 'POST /admin/password': 'set the admin password',
    'POST /config/reload': 'had the configuration read again', 'PUT /config/document': 'changed the configuration', 'POST /config/rollback': 'took back the configuration',
    'POST /refresh': 'took newer facts about models', 'POST /prices/reprice': 'priced past calls anew', 'POST /keys/{key}/rotate': 'rotated a key',
    'POST /keys/{key}/revoke': 'revoked a key', 'POST /keys/{key}/restore': 'restored a key',
  });
  if (known[operation]) return known[operation];
  const thing = (parts[0] === 'config' && parts[1] ? parts[1] : parts[0]).replace(/s$/, '');
  return last.startsWith('{') || parts.length === 1 ? `${verb} a ${thing}` : `${last}: ${thing}`;
}

export default function Audit() {
  const q = route.value.query;
  const chosen = Object.fromEntries(filters.map((name) => [name, q.get(name) ?? '']));
  const path = '/audit' + query({ ...chosen, limit: page });
  return html`
    <${Page} title="Audit" lead="Every change that was made here, by whom and from where, and logins, also those that failed. Values are not kept, only what was set.">
      <${Filters} of=${chosen} />
      <${List} key=${path} path=${path} filtered=${filters.some((name) => chosen[name])} />
      <${AsCurl} of=${{ path }} />
    <//>`;
}

/** @param {{path: string, filtered: boolean}} props */
function List({ path, filtered }) {
  const newest = useLoad((signal) => get(path, signal), [path]);
  const [older, setOlder] = useState(/** @type {{changes: Change[], next?: string}|null} */ (null));
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const more = async (/** @type {string} */ before) => {
    setError(null);
    try {
      const d = await get(`${path}&before=${encodeURIComponent(before)}`);
      setOlder((old) => ({ changes: [...(old?.changes ?? []), ...d.changes], next: d.next }));
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
  };
  return html`<${Loaded} of=${newest}>${(/** @type {{changes: Change[], next?: string}} */ first) => {
    const next = older ? older.next : first.next;
    const all = [...first.changes, ...(older?.changes ?? [])];
    if (!all.length) return html`<${Empty} title=${filtered ? 'Nothing was changed that is so' : 'Nothing was changed yet'}><p>${filtered ? 'Another filter may show more.' : 'Make a key, and it stands here.'}</p><//>`;
    return html`
      <${Card}><${Table} label="Changes" rows=${all} id=${(/** @type {Change} */ c) => c.id} columns=${columns} /><//>
      ${error && html`<${Problem} error=${error} />`}
      ${next ? html`<p><button type="button" onClick=${() => more(next)}>Older</button></p>` : html`<p class="note">That is all.</p>`}`;
  }}<//>`;
}

const columns = [
  { name: 'What', cell: (/** @type {Change} */ c) => html`${c.who} ${deed(c)}${c.times && c.times > 1 ? ` ×${c.times}` : ''}${c.object && html` <strong>${c.object.replace(/^\S+ (?=\S)/, '')}</strong>`}<small class="mono" title=${c.object}>${c.operation}</small>` },
  { name: 'Set', cell: (/** @type {Change} */ c) => (c.members?.length ? c.members.join(', ') : html`<span class="note">–</span>`) },
  { name: 'When', cell: (/** @type {Change} */ c) => html`<${Time} at=${c.time} say=${ago(c.time)} />` },
  { name: 'From', cell: (/** @type {Change} */ c) => html`${c.from || 'this machine'}<small>by ${c.via}</small>` },
  { name: 'Outcome', cell: (/** @type {Change} */ c) => html`<${Badge} tone=${!c.status ? 'warn' : c.status < 400 ? 'good' : 'bad'}>${!c.status ? 'not known' : c.status < 400 ? 'done' : `refused, ${c.status}`}<//>` },
];

/** @param {{of: Record<string, string>}} props */
function Filters({ of }) {
  const set = (/** @type {any} */ e) => setQuery({ [e.currentTarget.name]: e.currentTarget.value });
  return html`
    <div class="filters" role="search" aria-label="Changes">
      <${Field} label="Who" name="who" value=${of.who} placeholder="everybody" onChange=${set} />
      <${Field} label="What kind" name="on" onChange=${set}><option value="">everything</option>${Object.entries(things).map(([name, what]) => html`<option value=${name} selected=${name === of.on}>${what}</option>`)}<//>
      <${Field} label="Name or ID" name="object" value=${of.object} placeholder="of what was changed" onChange=${set} />
      <${Field} label="Outcome" name="failed" onChange=${set}><option value="">any</option><option value="true" selected=${of.failed === 'true'}>refused</option><//>
    </div>`;
}
