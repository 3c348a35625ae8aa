// @ts-nocheck
// Connect: the exact settings of a client, and whether it has arrived.
import { get, query, secrets } from '../api.js';
import { Outcome } from '../calltable.js';
import { duration } from '../format.js';
import { html, useEffect, useState } from '../html.js';
import { link, route, setQuery } from '../route.js';
import { snippets } from '../snippets.js';
import { AsCurl, Card, Code, Empty, Field, Loaded, Page, useLoad } from '../ui.js';

export default function Connect() {
  const all = useLoad(async (signal) => {
    const [keys, models] = await Promise.all([get('/keys', signal), get('/models', signal)]);
    return { keys: keys.keys.filter((k) => k.status === 'active'), models: models.models };
  }, []);
  return html`
    <${Page} title="Connect" lead="Choose a client, and take its settings from here: this gateway's address, a key and a model are filled in.">
      <${Loaded} of=${all}>${({ keys, models }) => (keys.length === 0
        ? html`<${Empty} title="A client needs a key"><p>There is no key that works. Make one, and its settings are filled in here.</p><a class="button primary" href="#/keys/new">New key</a><//>`
        : models.length === 0 ? html`<${Empty} title="There is no model to use yet"><p>Models come from providers. <a href="#/providers">See how they are doing</a></p><//>`
        : html`<${Chosen} keys=${keys} models=${models} />`)}<//>
    <//>`;
}

function Chosen({ keys, models }) {
  const q = route.value.query;
  const key = keys.find((k) => k.id === q.get('key') || k.name === q.get('key')) ?? keys.find((k) => secrets.has(k.id)) ?? keys[0];
  const model = models.find((m) => m.id === q.get('model')) ?? models[0];
  const [typed, setTyped] = useState('');
  const secret = secrets.get(key.id) || typed.trim();
  const base = location.origin + '/v1';
  const path = '/clients' + query({ model: model.id, base });
  const known = useLoad((signal) => get(path, signal), [path]);
  return html`
    <${Card}>
      <div class="fields">
        <${Field} label="Key" onChange=${(e) => { setTyped(''); setQuery({ key: e.currentTarget.value }); }}>${keys.map((k) => html`<option value=${k.id} selected=${k.id === key.id}>${k.name} (${k.prefix}${k.id}…)</option>`)}<//>
        <${Field} label="Model" onChange=${(e) => setQuery({ model: e.currentTarget.value })}>${models.map((m) => html`<option value=${m.id} selected=${m.id === model.id}>${m.id}</option>`)}<//>
        ${!secrets.has(key.id) && html`<${Field} label="The key itself" type="password" autocomplete="off" placeholder=${`${key.prefix}${key.id}_…`} value=${typed} onInput=${(e) => setTyped(e.currentTarget.value)} hint="To fill it in. It stays in this page." />`}
      </div>
      <dl class="facts"><dt>Base URL</dt><dd class="mono">${base}</dd><dt>Anthropic's clients</dt><dd class="mono">${location.origin}</dd></dl>
    <//>
    <${Loaded} of=${known}>${(d) => html`<${Clients} key=${path} files=${d.clients} place=${d.key_place} target=${{ base, root: location.origin, model: model.id, key: secret || 'YOUR-KEY' }} />`}<//>
    <${Arrival} key=${key.id} of=${key} />
    <${AsCurl} of=${{ path }} />`;
}

/** @param {{files: any[], place: string, target: import('../snippets.js').Target}} props */
function Clients({ files, place, target }) {
  const all = [
    ...files.map((c) => ({ ...c, text: c.text.replaceAll(place, target.key) })),
    ...snippets.map((s) => ({ ...s, text: s.text(target) })),
  ];
  const chosen = all.find((c) => c.name === route.value.query.get('client')) ?? all[0];
  const variable = chosen.variable && `export ${chosen.variable}='${target.key.replaceAll("'", `'\\''`)}'`;
  return html`
    <div class="clients" role="group" aria-label="Client">${all.map((c) => html`<button type="button" aria-pressed=${c.name === chosen.name} onClick=${() => setQuery({ client: c.name })}>${c.title}</button>`)}</div>
    <${Card} title=${chosen.title} aside=${html`<span class="mono note">${chosen.file}</span>`}>
      <${Code} text=${chosen.text} label=${`Settings of ${chosen.title}`} />
      ${variable && html`<p class="note">It reads the key from the shell:</p><${Code} text=${variable} label="The key's variable" />`}
      ${chosen.by_hand?.map((text) => html`<p class="note">${text}</p>`)}
      ${files.some((c) => c.name === chosen.name) && html`<p class="note">Or have it done: <code>limen connect ${chosen.name}</code> on the client's machine changes the file itself, keeps all else in it, and takes it back with <code>--undo</code>.</p>`}
    <//>`;
}

/** A box that turns green with the first call of the key since the page was opened. */
function Arrival({ of }) {
  const [before, setBefore] = useState(/** @type {string|null|undefined} */ (undefined));
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const leave = new AbortController();
    let timer = 0;
    let newest = /** @type {string|null|undefined} */ (undefined);
    const ask = async () => {
      try {
        const { calls } = await get('/calls' + query({ key: of.id, limit: 1 }), leave.signal);
        const id = calls[0]?.request_id ?? null;
        if (newest === undefined) setBefore(newest = id);
        if (id !== newest) {
          setSeen(calls[0]);
          return;
        }
      } catch {
        // It is asked again; the rest of the page tells when the gateway is away.
      }
      if (!leave.signal.aborted) timer = setTimeout(ask, 1500);
    };
    ask();
    return () => { leave.abort(); clearTimeout(timer); };
  }, [of.id]);
  if (seen) {
    return html`
      <div class="wait arrived" role="status"><span class="pulse"></span>
        <div><strong>${seen.error ? 'It arrived, and failed' : 'It works'}</strong><p>${of.name} called ${seen.model || 'a model'}: <${Outcome} call=${seen} /> after ${duration(seen.total_ms)}. <a href=${link(['calls', seen.request_id])}>Look at it</a></p></div></div>`;
  }
  return html`
    <div class="wait" role="status"><span class="pulse"></span>
      <div><strong>Waiting for the first call of ${of.name}</strong><p>${before === undefined ? 'Looking' : 'This turns green as soon as it arrives.'}</p></div></div>`;
}
