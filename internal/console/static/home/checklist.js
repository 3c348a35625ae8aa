// What a new gateway still needs: it turns green by itself.
import { mayChange } from '../api.js';
import { ago, count } from '../format.js';
import { html } from '../html.js';
import { link } from '../route.js';
import { Card, Code } from '../ui.js';

/** @typedef {{providers: import('./warnings.js').Provider[], keys: import('./warnings.js').Owner[], calls: import('../calltable.js').Call[]}} Setup */

/** @param {Setup} props */
export function Checklist({ providers, keys, calls }) {
  const good = providers.filter((p) => !p.error && p.models > 0);
  const bad = providers.filter((p) => p.error);
  const add = mayChange() && html`<a href=${link(['providers'], { add: 'any' })}>Add a provider</a>`;
  const alone = good.length === 1 && good[0].name === 'echo'; // it stands in while there is none
  const active = keys.filter((k) => k.status === 'active');
  if (good.length && active.length && calls.length) {
    return html`<p class="row"><span><span class="light good"></span>Everything is set up: ${good.length === 1 ? `${good[0].name} answers` : `${good.length} providers answer`}, ${count(active.length)} ${active.length === 1 ? 'key' : 'keys'}, last call ${ago(calls[0].time)}.</span>${alone ? add : html`<a href="#/connect">Connect another client</a>`}</p>`;
  }
  return html`
    <${Card} title="To begin with" aside=${html`<small>this list looks for itself</small>`}>
      <ul class="checks">
        <${Check} state=${good.length ? 'done' : bad.length ? 'wrong' : ''} what=${good.length || !bad.length ? 'A provider answers' : `${bad.map((p) => p.name).join(', ')} ${bad.length === 1 ? 'does' : 'do'} not answer`}>
          ${alone ? html`<p>Only <code>echo</code>, which says back what it hears. ${add}</p>`
            : good.length ? html`<p>${good.map((p) => `${p.name} (${count(p.models)} ${p.models === 1 ? 'model' : 'models'})`).join(', ')}</p>`
            : bad.length ? html`<p>${bad[0].error}</p><p><a href=${link(['providers', bad[0].name])}>Test it, or change its key</a></p>`
            : html`<p>Choose a vendor and paste a key of yours, or name a server of your own. ${add}</p>`}
        <//>
        <${Check} state=${active.length ? 'done' : ''} what="A key is made">
          ${active.length ? html`<p>${active.slice(0, 3).map((k) => k.name).join(', ')}${active.length > 3 ? ` and ${active.length - 3} more` : ''}</p>`
            : html`<p>Clients come with a key of their own. <a href="#/keys/new">Make the first one</a></p>`}
        <//>
        <${Check} state=${calls.length ? 'done' : ''} what="The first call is seen">
          ${calls.length ? html`<p>${calls[0].model || 'A call'}, ${ago(calls[0].time)}. <a href=${link(['calls', calls[0].request_id])}>Look at it</a></p>`
            : html`<p>Set a client up with <a href="#/connect">Connect</a>, say something in the <a href="#/playground">Playground</a>, or try it from a shell:</p>
              <${Code} label="A first call" text=${`curl ${location.origin}/v1/models -H "Authorization: Bearer $LIMEN_KEY"`} />`}
        <//>
      </ul>
    <//>`;
}

/** @param {{state: string, what: string, children?: import('../ui.js').Children}} props */
const Check = ({ state, what, children }) => html`
  <li class=${state}><span class="tick" aria-hidden="true">${state === 'wrong' ? '!' : '✓'}</span>
    <div><strong>${what}</strong><span class="away">${state === 'done' ? ', done' : state === 'wrong' ? ', needs attention' : ', not yet'}</span>${children}</div></li>`;
