// Connect: the exact settings of a client, and what came of it.
import { Box } from '../arrivals.js';
import { call, get, mayChange, query, secrets } from '../api.js';
import { html, useState } from '../html.js';
import { route, setQuery } from '../route.js';
import { sheet } from '../sheet.js';
import { snippets } from '../snippets.js';
import { AsCurl, Card, Code, Empty, Field, Loaded, Page, Problem, say, useLoad } from '../ui.js';

await sheet('connect.css');

/** @typedef {{id: string, name: string, prefix: string, status: string}} Key */

export default function Connect() {
  const all = useLoad(async (signal) => {
    const [keys, models] = await Promise.all([get('/keys', signal), get('/models', signal)]);
    return { keys: keys.keys, models: models.models };
  }, []);
  return html`
    <${Page} title="Connect" lead="Choose a client, and take its settings from here: this gateway's address, a key and a model are filled in.">
      <${Loaded} of=${all}>${({ keys, models }) => (models.length === 0
        ? html`<${Empty} title="There is no model to use yet"><p>Models come from providers. <a href="#/providers">See how they are doing</a></p><//>`
        : html`<${Chosen} known=${keys} models=${models} />`)}<//>
    <//>`;
}

/** @param {{known: Key[], models: {id: string}[]}} props */
function Chosen({ known, models }) {
  const q = route.value.query;
  const [made, setMade] = useState(/** @type {Key[]} */ ([]));
  const [typed, setTyped] = useState('');
  const all = [...known, ...made];
  const keys = all.filter((k) => k.status === 'active');
  const key = keys.find((k) => k.id === q.get('key') || k.name === q.get('key')) ?? keys.find((k) => secrets.has(k.id)) ?? keys[0];
  const model = models.find((m) => m.id === q.get('model')) ?? models[0];
  const base = location.origin + '/v1';
  const path = '/clients' + query({ model: model.id, base });
  const clients = useLoad((signal) => get(path, signal), [path]);
  const secret = key && (secrets.get(key.id) || typed.trim());
  const name = newName(q.get('client') ?? 'curl', all);
  return html`
    <${Card}>
      <div class="fields">
        ${key && html`<${Field} label="Key" onChange=${(e) => { setTyped(''); setQuery({ key: e.currentTarget.value }); }}>${keys.map((k) => html`<option value=${k.id} selected=${k.id === key.id}>${k.name} (${k.prefix}${k.id}…)</option>`)}<//>`}
        <${Field} label="Model" onChange=${(e) => setQuery({ model: e.currentTarget.value })}>${models.map((m) => html`<option value=${m.id} selected=${m.id === model.id}>${m.id}</option>`)}<//>
        ${key && !secrets.has(key.id) && html`<${Field} label="The key itself" type="password" autocomplete="off" placeholder=${`${key.prefix}${key.id}_…`} value=${typed} onInput=${(e) => setTyped(e.currentTarget.value)} hint="To fill it in. It stays in this page." />`}
      </div>
      ${!secret && html`<${MakeKey} name=${name} first=${!key} done=${(k) => { setMade([...made, k]); setQuery({ key: k.id }); }} />`}
      <dl class="facts"><dt>Base URL</dt><dd class="mono">${base}</dd><dt>Anthropic's clients</dt><dd class="mono">${location.origin}</dd></dl>
    <//>
    <${Loaded} of=${clients}>${(d) => html`<${Clients} key=${path} files=${d.clients} place=${d.key_place} of=${key} keys=${all} known=${Boolean(secret)} target=${{ base, root: location.origin, model: model.id, key: secret || 'YOUR-KEY' }} />`}<//>
    <${AsCurl} of=${{ path }} />`;
}

/** A name for a new key that no key has. @param {string} client @param {Key[]} keys */
function newName(client, keys) {
  const taken = new Set(keys.map((k) => k.name));
  for (let n = 1; ; n++) {
    const name = n === 1 ? client : `${client}-${n}`;
    if (!taken.has(name)) return name;
  }
}

/**
 * A key in one step: its secret is filled in, and shown in the settings.
 * @param {{name: string, first: boolean, done: (key: Key) => void}} props
 */
function MakeKey({ name, first, done }) {
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  if (!mayChange()) return first && html`<p class="note">A client needs a key, which an admin can make.</p>`;
  const request = { method: 'POST', path: '/keys', body: { name } };
  const make = async () => {
    setError(null);
    try {
      const key = await call(request);
      secrets.set(key.id, key.key);
      done(key);
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
  };
  return html`
    <div class="form-end"><button type="button" class="primary" onClick=${make}>Make a key</button>
      <span class="note">${first ? 'There is none yet.' : 'A new one, filled in at once.'}</span><${AsCurl} of=${request} /></div>
    ${error && html`<${Problem} error=${error} />`}`;
}

/** @param {{files: any[], place: string, of?: Key, keys: Key[], known: boolean, target: import('../snippets.js').Target}} props */
function Clients({ files, place, of, keys, known, target }) {
  const [first, ...rest] = snippets.map((s) => ({ ...s, text: s.text(target) }));
  const all = /** @type {any[]} */ ([first, ...files.map((c) => ({ ...c, text: c.text.replaceAll(place, target.key) })), ...rest]);
  const chosen = all.find((c) => c.name === route.value.query.get('client')) ?? all[0];
  const variable = chosen.variable && `export ${chosen.variable}='${target.key.replaceAll("'", `'\\''`)}'`;
  return html`
    <div class="clients" role="group" aria-label="Client">${all.map((c) => html`<button type="button" aria-pressed=${c.name === chosen.name} onClick=${() => setQuery({ client: c.name })}>${c.title}</button>`)}</div>
    <${Card} title=${chosen.title} aside=${html`<span class="mono note">${chosen.file}</span>`}>
      <${Code} text=${chosen.text} label=${`Settings of ${chosen.title}`} />
      ${variable && html`<p class="note">It reads the key from the shell:</p><${Code} text=${variable} label="The key's variable" />`}
      ${chosen.by_hand?.map((/** @type {string} */ text) => html`<p class="note">${text}</p>`)}
      ${files.some((c) => c.name === chosen.name) && html`<p class="note">Or have it done: <code>limen connect ${chosen.name}</code> on the client's machine changes the file itself, keeps all else in it, and takes it back with <code>--undo</code>.</p>`}
    <//>
    ${of && html`<${Box} client=${chosen} of=${of} keys=${keys} titles=${Object.fromEntries(all.map((c) => [c.name, c.title]))} send=${known ? () => send(target) : undefined} />`}`;
}

/** send makes the call that curl would make. What comes of it is in the box. @param {import('../snippets.js').Target} target */
async function send({ base, key, model }) {
  try {
    await fetch(base + '/chat/completions', {
      method: 'POST', credentials: 'omit', headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    });
  } catch {
    say('The gateway does not answer. Is it running?');
  }
}
