// Secrets of the document: they are written, and never read again.
import { call, mayChange } from './api.js';
import { ago } from './format.js';
import { html, useState } from './html.js';
import { AsCurl, Badge, Card, Dialog, Empty, Field, Form, Loaded, Table, Time, say, useGet } from './ui.js';

/** @typedef {{name: string, updated: string, used: boolean}} Secret */

/** @param {string} name */
const pathOf = (name) => '/config/secrets/' + encodeURIComponent(name);

/** @param {{doc: import('./pages/config.js').Doc}} props */
export function Secrets({ doc }) {
  const secrets = useGet('/config/secrets', 10000);
  const [open, setOpen] = useState(/** @type {{kind: 'set'|'delete', name: string}|null} */ (null));
  const close = () => setOpen(null);
  const after = (/** @type {string} */ text) => { close(); say(text); secrets.reload(); };
  const add = mayChange() && html`<button type="button" class="primary" onClick=${() => setOpen({ kind: 'set', name: '' })}>New secret</button>`;
  return html`
    <${Loaded} of=${secrets}>${(/** @type {{secrets: Secret[]}} */ d) => (d.secrets.length === 0
      ? html`<${Empty} title="No secret yet"><p>${doc.source === 'file'
          ? html`A file names variables of the environment, such as <code>${'${OPENAI_API_KEY}'}</code>, or files. Secrets kept here are for a document that is kept here.`
          : html`Keys of providers do not stand in the document. They are kept here, sealed, and it names them: <code>${'api_key: ${secret:openai}'}</code>. Nobody can read them again.`}</p>${doc.source !== 'file' && add}<//>`
      : html`<${Card} title="Secrets" aside=${add}><${Table} label="Secrets" rows=${d.secrets} id=${(s) => s.name} columns=${[
          { name: 'Name', cell: (s) => html`<strong>${s.name}</strong><small class="mono">${'${secret:' + s.name + '}'}</small>` },
          { name: 'Used', cell: (s) => html`<${Badge} tone=${s.used ? 'good' : 'plain'}>${s.used ? 'by the document' : 'not used'}<//>` },
          { name: 'Written', cell: (s) => html`<${Time} at=${s.updated} say=${ago(s.updated)} />` },
          ...(mayChange() ? [{ name: 'Change', cell: (/** @type {Secret} */ s) => html`<span class="row">
            <button type="button" class="small" aria-label=${`Write ${s.name} anew`} onClick=${() => setOpen({ kind: 'set', name: s.name })}>Write anew</button>
            <button type="button" class="small danger" aria-label=${`Delete ${s.name}`} disabled=${s.used} title=${s.used ? 'the document uses it' : undefined} onClick=${() => setOpen({ kind: 'delete', name: s.name })}>Delete</button></span>` }] : []),
        ]} /><//>`)}<//>
    <${AsCurl} of=${{ path: '/config/secrets' }} />
    ${open?.kind === 'set' && html`<${Set} name=${open.name} close=${close} done=${() => after('The secret is kept.')} />`}
    ${open?.kind === 'delete' && html`
      <${Dialog} title=${`Delete ${open.name}?`} close=${close}>
        <p>The document does not use it. Nobody can bring it back.</p>
        <${Form} send=${async () => { await call({ method: 'DELETE', path: pathOf(open.name) }); after('Deleted.'); }} label="Delete" tone="danger"
          request=${() => ({ method: 'DELETE', path: pathOf(open.name) })} cancel=${close} />
      <//>`}`;
}

/** @param {{name: string, close: () => void, done: () => void}} props */
function Set({ name, close, done }) {
  const request = (/** @type {Record<string, string>} */ values) => ({ method: 'PUT', path: pathOf(name || values.name || 'NAME'), body: { value: values.value } });
  return html`
    <${Dialog} title=${name ? `Write ${name} anew` : 'New secret'} close=${close}>
      <${Form} send=${async (/** @type {Record<string, string>} */ values) => { await call(request(values)); done(); }} label="Keep it" cancel=${close}
        request=${(/** @type {Record<string, string>} */ values) => request({ ...values, value: 'THE SECRET' })}>
        ${!name && html`<${Field} label="Name" name="name" required autofocus maxlength="64" pattern="[A-Za-z0-9_.\\-]+" placeholder="openai" hint="Letters, digits, - _ and dots. The document names it as \${secret:openai}." />`}
        <${Field} label="Secret" name="value" type="password" required autofocus=${!!name} autocomplete="new-password" hint="It is not shown again." />
      <//>
    <//>`;
}
