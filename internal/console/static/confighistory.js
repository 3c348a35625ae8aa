// The versions of the document, and the way back to one.
import { call, mayChange, query } from './api.js';
import { ago, time } from './format.js';
import { html, useState } from './html.js';
import { go, link, route } from './route.js';
import { AsCurl, Badge, Card, Dialog, Empty, Form, Loaded, Table, Time, say, useGet, useLoad } from './ui.js';
import { Diff } from './diff.js';
import { Editor } from './editor.js';

/**
 * @typedef {import('./pages/config.js').Doc} Doc
 * @typedef {{version: number, at: string, by: string, note?: string, current?: boolean, text?: string, diff?: string}} Saved
 */

/** @param {{doc: Doc}} props */
export function History({ doc }) {
  const path = '/config/versions' + query({ limit: 50, before: route.value.query.get('before') });
  const versions = useGet(path, 10000);
  return html`
    <${Loaded} of=${versions}>${(/** @type {{versions: Saved[], next?: number}} */ d) => (d.versions.length === 0
      ? html`<${Empty} title="No version yet"><p>${doc.source === 'file' ? `The file ${doc.path} rules. Its history is kept where you keep the file.`
          : html`Each time that the document is applied, it becomes a version here, and each can be brought back. <a href="#/config">Write the first</a>`}</p><//>`
      : html`
        <${Card} title="Versions"><${Table} label="Versions" rows=${d.versions} id=${(v) => String(v.version)} columns=${[
          { name: 'Version', cell: (v) => html`<a href=${link(['config', 'history', String(v.version)])}>Version ${v.version}</a> ${v.current && html`<${Badge} tone="good">${doc.source === 'file' ? 'newest' : 'in force'}<//>`}` },
          { name: 'Saved', cell: (v) => html`<${Time} at=${v.at} say=${ago(v.at)} />` },
          { name: 'By', cell: (v) => v.by },
          { name: 'Note', cell: (v) => v.note || html`<span class="note">none</span>` },
        ]} /><//>
        ${d.next && html`<p><a href=${link(['config', 'history'], { before: d.next })}>Older</a></p>`}`)}<//>
    <${AsCurl} of=${{ path }} />`;
}

/** @param {{version: string, doc: Doc, reload: () => void}} props */
export function Version({ version, doc, reload }) {
  const path = '/config/versions/' + encodeURIComponent(version);
  const one = useGet(path);
  const [asked, ask] = useState(false);
  const back = (/** @type {number} */ made) => { say(`Version ${made} is in force, with the text of version ${version}.`); reload(); go(['config', 'history']); };
  return html`<${Loaded} of=${one}>${(/** @type {Saved} */ v) => html`
    <${Card} title=${`Version ${v.version}`} aside=${html`<small>${v.by}, ${time(v.at)}</small>`}>
      ${v.note && html`<p>${v.note}</p>`}
      <${Diff} text=${v.diff} label="What it changed" none=${v.version === 1 ? 'The first one.' : 'It has the text of the version before.'} />
      <div class="row">
        ${mayChange() && doc.source !== 'file' && v.version !== doc.version && html`<button type="button" onClick=${() => ask(true)}>Bring it back</button>`}
        <${AsCurl} of=${{ path }} />
      </div>
    <//>
    <${Card} title="Its text"><${Editor} label=${`Text of version ${v.version}`} text=${v.text ?? ''} /><//>
    ${asked && html`<${Rollback} to=${v} base=${doc.version ?? 0} close=${() => ask(false)} done=${back} />`}`}<//>`;
}

/** @param {{to: Saved, base: number, close: () => void, done: (version: number) => void}} props */
function Rollback({ to, base, close, done }) {
  const check = useLoad((signal) => call({ method: 'POST', path: '/config/check', body: { text: to.text } }, signal), []);
  const request = { method: 'POST', path: '/config/rollback', body: { version: to.version, base } };
  return html`
    <${Dialog} title=${`Bring version ${to.version} back?`} close=${close} wide>
      <div class="stack">
        <p>Its text becomes a new version, ${base + 1}, and is in force at once. None is lost.</p>
        <${Loaded} of=${check}>${(/** @type {{ok: boolean, problems: import('./api.js').Fault[], diff?: string}} */ c) => (c.ok
          ? html`<${Diff} text=${c.diff} label="What that changes" none="It is what is in force already." />`
          : html`<div class="notice bad"><p>It is not good any more:</p><ul>${c.problems.map((f) => html`<li>Line ${f.line}: ${f.message}</li>`)}</ul></div>`)}<//>
        <${Form} send=${async () => done((await call(request)).version)} label="Bring it back" request=${() => request} cancel=${close} />
      </div>
    <//>`;
}
