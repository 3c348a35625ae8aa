// A model of one's own: a name, and the targets behind it.
import { call } from './api.js';
import { html, useState } from './html.js';
import { Code, Field, Form } from './ui.js';
import { yaml } from './yaml.js';

/**
 * @typedef {{to: string, weight?: number, [member: string]: any}} Target as in the document, where it is a mapping
 * @typedef {Record<string, any>} Settings of a model, as in the document
 */

/** @param {string} id */
export const pathOf = (id) => '/config/models/' + encodeURIComponent(id);

const strategies = [
  ['', 'by weight, else in order'], ['ordered', 'in order: the first that is well'], ['weighted', 'by weight'],
  ['latency', 'the quickest to begin'], ['busy', 'the least busy'], ['price', 'the cheapest'],
];

/** @param {Target} target @returns {Target|string} in its short form, where that says all */
const short = (target) => (Object.values(target).filter((v) => v !== undefined).length === 1 ? target.to : target);

/**
 * @param {{id?: string, settings?: Settings, all: import('./pages/models.js').Model[], doc: import('./pages/config.js').Doc, close: () => void, done: (id: string) => void}} props
 *   id is that of a model that is changed
 */
export function ModelForm({ id, settings = {}, all, doc, close, done }) {
  const [targets, setTargets] = useState(() => /** @type {Target[]} */ ([settings.targets ?? ''].flat().map((/** @type {any} */ t) => (typeof t === 'string' ? { to: t } : t))));
  const [name, setName] = useState(id ?? '');
  const [more, setMore] = useState(/** @type {Record<string, string>} */ ({ strategy: settings.strategy ?? '', description: settings.description ?? '' }));
  const known = [...new Set(all.flatMap((m) => m.targets))];
  const model = { ...settings, targets: targets.filter((t) => t.to).map(short), strategy: more.strategy || undefined, description: more.description || undefined };
  const request = { method: 'PUT', path: pathOf(name || 'NAME'), body: { model, base: doc.version ?? 0 } };
  const fields = html`
    ${!id && html`<${Field} label="Name" required autofocus maxlength="200" placeholder="fast" hint="What clients ask for." onInput=${(e) => setName(e.currentTarget.value)} />`}
    <${Targets} of=${targets} set=${setTargets} known=${known} />
    <div class="fields">
      <${Field} label="Which one serves" onChange=${(e) => setMore({ ...more, strategy: e.currentTarget.value })}>
        ${strategies.map(([value, title]) => html`<option value=${value} selected=${value === more.strategy}>${title}</option>`)}<//>
      <${Field} label="Description" maxlength="500" value=${more.description} hint="Shown in the list of models." onInput=${(e) => setMore({ ...more, description: e.currentTarget.value })} />
    </div>`;
  if (doc.source !== 'file') return html`<${Form} send=${async () => { await call(request); done(name); }} label=${id ? 'Change' : 'Make the model'} request=${() => request} cancel=${close}>${fields}<//>`;
  return html`
    <form onSubmit=${(e) => e.preventDefault()}>${fields}</form>
    <div class="stack into">
      <p>Limen was started with <code>${doc.path}</code>, so it is written there. The file is read again when it changes.</p>
      <${Code} text=${yaml({ models: { [name || 'NAME']: model } })} label="For the file" />
      <div class="row"><button type="button" onClick=${close}>Done</button></div>
    </div>`;
}

/** @param {{of: Target[], set: (targets: Target[]) => void, known: string[]}} props */
function Targets({ of, set, known }) {
  const change = (/** @type {number} */ i, /** @type {Partial<Target>} */ to) => set(of.map((t, n) => (n === i ? { ...t, ...to } : t)));
  const swap = (/** @type {number} */ i) => set(of.map((t, n) => (n === i - 1 ? of[i] : n === i ? of[i - 1] : t)));
  return html`
    <fieldset class="stack"><legend class="label">Targets, in order of preference</legend>
      <ol class="targets">${of.map((t, i) => html`
        <li>
          <${Field} label=${`Target ${i + 1}`} required list="known-targets" placeholder="provider/model" value=${t.to} onInput=${(e) => change(i, { to: e.currentTarget.value.trim() })} />
          <${Field} label="Weight" type="number" min="1" step="1" placeholder="1" value=${t.weight ?? ''} onInput=${(e) => change(i, { weight: Number(e.currentTarget.value) || undefined })} />
          <div class="row">
            <button type="button" aria-label=${`Target ${i + 1} one place up`} disabled=${i === 0} onClick=${() => swap(i)}>↑</button>
            <button type="button" aria-label=${`Leave target ${i + 1} out`} disabled=${of.length === 1} onClick=${() => set(of.filter((_, n) => n !== i))}>✕</button>
          </div>
          ${t.when && html`<small>for calls with <code>${t.when}</code></small>`}
        </li>`)}</ol>
      <div><button type="button" onClick=${() => set([...of, { to: '' }])}>Another target</button></div>
      <datalist id="known-targets">${known.slice(0, 1000).map((t) => html`<option value=${t}></option>`)}</datalist>
    </fieldset>`;
}
