// Adding a provider, and changing one: into the document, or as YAML where a file rules.
import { call } from './api.js';
import { html, useState } from './html.js';
import { Code, Dialog, Field, Form, Loaded, say, useGet } from './ui.js';
import { Call } from './providertest.js';
import { yaml } from './yaml.js';

/**
 * @typedef {import('./pages/config.js').Doc} Doc
 * @typedef {{name: string, title?: string, base_url: string, key_env: string[], speaks: string[]}} Vendor
 * @typedef {Record<string, string>} Values
 * @typedef {Record<string, any>} Settings of a provider, as in the document
 */

const dialects = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'bedrock'];

/** @param {string} name */
const pathOf = (name) => '/config/providers/' + encodeURIComponent(name);

/** free is a name that no provider has. @param {string} name @param {string[]} taken */
function free(name, taken) {
  for (let n = 1; ; n++) {
    const next = n === 1 ? name : `${name}-${n}`;
    if (!taken.includes(next)) return next;
  }
}

/** @param {Values} values @param {Vendor} [vendor] @returns {Settings} */
const settingsOf = (values, vendor) => ({
  vendor: vendor && vendor.name !== values.name ? vendor.name : undefined,
  base_url: values.base_url || undefined,
  speaks: vendor ? undefined : [values.speaks || dialects[0]],
});

/**
 * Add asks for a provider, saves it, and calls it.
 * @param {{first: string, doc: Doc, taken: string[], reload: () => void, close: () => void}} props first is the name of a vendor, or of none
 */
export function Add({ first, doc, taken, reload, close }) {
  const vendors = useGet('/vendors');
  const [saved, setSaved] = useState('');
  const [ended, setEnded] = useState(/** @type {boolean|null} */ (null));
  return html`
    <${Dialog} title=${saved ? `Provider “${saved}”` : 'Add a provider'} close=${close} wide>
      ${saved ? html`
        <div class="stack">
          <p>It is saved, and in force. Now it is called, so that you know.</p>
          <${Call} provider=${saved} done=${(ok) => { setEnded(ok); reload(); }} />
          ${ended !== null && html`<div class="row">
            ${!ended && html`<button type="button" class="primary" onClick=${() => { setEnded(null); setSaved(''); }}>Change it</button>`}
            <a class=${ended ? 'button primary' : 'button'} href=${'#/providers/' + encodeURIComponent(saved)}>See the provider</a>
            <button type="button" onClick=${close}>Done</button></div>`}
        </div>`
      : html`<${Loaded} of=${vendors}>${(/** @type {{vendors: Vendor[]}} */ v) => html`<${AddForm} first=${first} vendors=${v.vendors} doc=${doc} taken=${taken} close=${close} done=${setSaved} />`}<//>`}
    <//>`;
}

/** What was typed for the provider that is added, without the key, until it is. */
let typed = /** @type {Values} */ ({});

/** @param {{first: string, vendors: Vendor[], doc: Doc, taken: string[], close: () => void, done: (name: string) => void}} props */
function AddForm({ first, vendors, doc, taken, close, done }) {
  const [values, setValues] = useState(/** @type {Values} */ (typed.vendor === undefined ? { vendor: vendors.some((v) => v.name === first) ? first : vendors[0]?.name ?? '' } : typed));
  const vendor = vendors.find((v) => v.name === values.vendor);
  const name = typed.vendor === values.vendor && typed.name ? typed.name : free(vendor?.name ?? 'mine', taken);
  const request = (/** @type {Values} */ now) => ({
    method: 'PUT', path: pathOf(now.name || name),
    body: { provider: settingsOf({ ...now, name: now.name || name }, vendor), api_key: now.api_key || undefined },
  });
  const send = async (/** @type {Values} */ now) => {
    typed = { ...now, api_key: '' };
    await call(request(now));
    say(`${now.name} is saved.`);
    done(now.name);
  };
  const watch = (/** @type {any} */ e) => setValues(Object.fromEntries(/** @type {any} */ (new FormData(e.target.form))));
  const fields = html`<${Fields} vendors=${vendors} vendor=${vendor} values=${values} name=${name} file=${doc.source === 'file'} />`;
  if (doc.source === 'file') return html`<form onInput=${watch} onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>${fields}<//><${IntoFile} doc=${doc} vendor=${vendor} values=${{ ...values, name: values.name || name }} close=${close} />`;
  return html`<div onInput=${watch}><${Form} send=${send} label="Save and test" request=${(now) => request({ ...now, api_key: now.api_key && 'THE KEY' })} cancel=${close}>${fields}<//></div>`;
}

/** @param {{vendors: Vendor[], vendor?: Vendor, values: Values, name: string, file: boolean}} props */
function Fields({ vendors, vendor, values, name, file }) {
  const open = vendor?.base_url.includes('{');
  return html`
    <${Field} label="Vendor" name="vendor" autofocus>
      ${vendors.map((v) => html`<option value=${v.name} selected=${v.name === values.vendor}>${v.title ?? v.name}</option>`)}
      <option value="" selected=${values.vendor === ''}>Another server, by its base URL</option><//>
    <div class="fields">
      <${Field} label="Name" name="name" required maxlength="64" value=${name} hint="Its models are offered as name/model." />
      ${!vendor && html`<${Field} label="Spoken to in" name="speaks">${dialects.map((d) => html`<option value=${d}>${d}</option>`)}<//>`}
    </div>
    ${!file && html`<${Field} label="API key" name="api_key" type="password" autocomplete="new-password" value=""
      hint=${`Kept sealed, and never shown again.${vendor?.key_env.length ? ` Absent: ${vendor.key_env[0]} of the environment, where it is set.` : ' Servers of your own may need none.'}`} />`}
    <${Field} label="Base URL" name="base_url" type="url" required=${!vendor || open} value=${values.base_url ?? ''} placeholder=${vendor?.base_url ?? 'http://127.0.0.1:8000/v1'}
      hint=${open ? 'Write what belongs to you in place of what stands in braces.' : vendor ? "Absent: the vendor's own." : 'It usually ends in /v1.'} />`;
}

/** IntoFile is what to write into the file that rules. @param {{doc: Doc, vendor?: Vendor, values: Values, close: () => void}} props */
function IntoFile({ doc, vendor, values, close }) {
  const variable = vendor ? vendor.key_env[0] : values.name.toUpperCase().replace(/[^A-Z0-9]+/g, '_') + '_API_KEY';
  const text = yaml({ providers: { [values.name]: { ...settingsOf(values, vendor), api_key: variable && '${' + variable + '}' } } });
  return html`
    <div class="stack into">
      <p>Limen was started with <code>${doc.path}</code>, so it is added there. The file is read again when it changes.</p>
      <${Code} text=${text} label="For the file" />
      ${variable && html`<p class="note">Set <code>${variable}</code> to the key where Limen runs, or write <code>${'${file:/run/secrets/' + values.name + '}'}</code> in its place. A server that needs no key needs no such line.</p>`}
      <div class="row"><button type="button" onClick=${close}>Done</button></div>
    </div>`;
}

/**
 * Edit changes the key and the address of a provider, and calls it.
 * @param {{of: import('./pages/providers.js').Provider, doc: Doc, close: () => void, reload: () => void}} props
 */
export function Edit({ of, doc, close, reload }) {
  const [saved, setSaved] = useState(false);
  return html`
    <${Dialog} title=${`Change “${of.name}”`} close=${close} wide>
      ${saved ? html`<div class="stack"><${Call} provider=${of.name} change=${() => setSaved(false)} done=${reload} /><div class="row"><button type="button" onClick=${close}>Done</button></div></div>`
        : html`<${EditForm} of=${of} doc=${doc} settings=${doc.document?.providers?.[of.name]} close=${close} done=${() => setSaved(true)} />`}
    <//>`;
}

/** @param {{of: import('./pages/providers.js').Provider, doc: Doc, settings?: Settings, close: () => void, done: () => void}} props */
function EditForm({ of, doc, settings = {}, close, done }) {
  if (doc.source === 'file') {
    return html`<div class="stack"><p>Limen was started with <code>${doc.path}</code>: change <code>${of.name}</code> under <code>providers</code> there. The file is read again when it changes.</p>
      <${Code} text=${yaml({ providers: { [of.name]: settings } })} label="As it is in the file" /><div class="row"><button type="button" onClick=${close}>Done</button></div></div>`;
  }
  const several = Array.isArray(settings.api_keys);
  const request = (/** @type {Values} */ values) => ({
    method: 'PUT', path: pathOf(of.name),
    body: {
      ...(values.base_url !== (settings.base_url ?? '') && { provider: { ...settings, base_url: values.base_url || undefined }, base: doc.version ?? 0 }),
      api_key: values.api_key || undefined,
    },
  });
  return html`
    <${Form} send=${async (values) => { await call(request(values)); done(); }} label="Save and test" cancel=${close} request=${(values) => request({ ...values, api_key: values.api_key && 'THE KEY' })}>
      ${several ? html`<p class="note">It has several keys. They are changed as <a href="#/config/secrets">secrets</a>, and in the <a href="#/config">document</a>.</p>`
        : html`<${Field} label="New API key" name="api_key" type="password" autofocus autocomplete="new-password" hint="Empty: the key stays as it is." />`}
      <${Field} label="Base URL" name="base_url" type="url" value=${settings.base_url ?? ''} placeholder=${of.base_url} hint="Empty: the vendor's own." />
      <p class="note">All else of it is in the <a href="#/config">document</a>.</p>
    <//>`;
}
