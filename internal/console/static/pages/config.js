// Configuration: the document, its versions, its secrets, and what is in force.
import { html } from '../html.js';
import { link } from '../route.js';
import { sheet } from '../sheet.js';
import { AsCurl, Card, Code, Loaded, Page, useGet } from '../ui.js';
import { Document } from '../configdocument.js';
import { History, Version } from '../confighistory.js';
import { Secrets } from '../configsecrets.js';
import { yaml } from '../yaml.js';

await sheet('config.css');

/**
 * @typedef {{problem?: string, diff?: string}} Drift how a file and what is in force differ
 * @typedef {{providers?: Record<string, any>, models?: Record<string, any>}} Written the document as JSON; absent while it cannot be read
 * @typedef {{source: 'file'|'store'|'none', path?: string, version?: number, text: string, document?: Written, drift?: Drift}} Doc
 */

const views = { document: 'Document', history: 'History', secrets: 'Secrets', force: 'In force' };

/** @param {{rest: string[]}} props */
export default function Config({ rest: [at = 'document', version] }) {
  const doc = useGet('/config/document', 5000);
  return html`
    <${Page} title="Configuration" lead="One document says what Limen serves, and how. It is checked before it is taken, and taken without a restart.">
      <ul class="tabs">${Object.entries(views).map(([name, title]) => html`
        <li><a href=${link(name === 'document' ? ['config'] : ['config', name])} aria-current=${at === name ? 'page' : undefined}>${title}</a></li>`)}</ul>
      <${Loaded} of=${doc}>${(/** @type {Doc} */ d) => {
        if (at === 'history') return version ? html`<${Version} version=${version} doc=${d} reload=${doc.reload} />` : html`<${History} doc=${d} />`;
        if (at === 'secrets') return html`<${Secrets} doc=${d} />`;
        if (at === 'force') return html`<${InForce} />`;
        return html`<${Document} doc=${d} reload=${doc.reload} />`;
      }}<//>
    <//>`;
}

function InForce() {
  const config = useGet('/config', 10000);
  return html`
    <${Card} title="What is in force" aside=${html`<small>with all defaults, without secrets</small>`}>
      <${Loaded} of=${config}>${(/** @type {object} */ c) => html`<${Code} text=${yaml(c)} label="The configuration in force" />`}<//>
      <${AsCurl} of=${{ path: '/config' }} />
    <//>`;
}
