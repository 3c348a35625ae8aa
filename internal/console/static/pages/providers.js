// Providers: where models come from, and how it stands with them.
import { ago, count } from '../format.js';
import { html } from '../html.js';
import { link } from '../route.js';
import { AsCurl, Badge, Card, Code, Empty, Loaded, Page, Table, Time, useGet } from '../ui.js';

/** @typedef {{name: string, base_url: string, speaks: string[], models: number, fetched?: string, error?: string}} Provider */

const example = 'providers:\n  openai: {api_key: "${OPENAI_API_KEY}"}\n  anthropic: {api_key: "${ANTHROPIC_API_KEY}"}\n  local: {base_url: "http://127.0.0.1:11434/v1"}';

export default function Providers() {
  const providers = useGet('/providers', 5000);
  return html`
    <${Page} title="Providers" lead="Where calls are sent. They are set in limen.yaml, or found by a vendor's variable such as OPENAI_API_KEY; secrets are never shown here.">
      <${Loaded} of=${providers}>${(/** @type {{providers: Provider[]}} */ d) => (d.providers.length === 0
        ? html`<${Empty} title="No provider yet"><p>Put one into limen.yaml; the file is read again when it changes.</p><${Code} text=${example} label="limen.yaml" /><//>`
        : html`<${Card}><${Table} label="Providers" rows=${d.providers} id=${(p) => p.name} columns=${[
            { name: 'Provider', cell: (p) => html`<strong>${p.name}</strong><small>${p.base_url}</small>` },
            { name: 'Health', cell: (p) => html`<${Badge} tone=${p.error ? 'bad' : 'good'}>${p.error ? 'does not answer' : 'answers'}<//>${p.error && html`<small>${p.error}</small>`}` },
            { name: 'Models', number: true, cell: (p) => html`<a href=${link(['models'], { q: p.name + '/' })}>${count(p.models)}</a>` },
            { name: 'Asked', cell: (p) => html`<${Time} at=${p.fetched} say=${ago(p.fetched)} />` },
            { name: 'Spoken to in', cell: (p) => html`<span class="note">${p.speaks.join(', ')}</span>` },
          ]} /><//>
          <details><summary>Add another</summary><p class="note">Into limen.yaml, which is read again when it changes:</p><${Code} text=${example} label="limen.yaml" /></details>`)}<//>
      <${AsCurl} of=${{ path: '/providers' }} />
    <//>`;
}
