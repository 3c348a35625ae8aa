// The document of the configuration: written, checked, and only then applied.
import { call, mayChange } from './api.js';
import { ago } from './format.js';
import { html, signal, useEffect, useState } from './html.js';
import { AsCurl, Card, Field, Form, Loaded, Problem, say, useGet } from './ui.js';
import { Diff, changes } from './diff.js';
import { Editor } from './editor.js';

/**
 * @typedef {import('./pages/config.js').Doc} Doc
 * @typedef {import('./api.js').Fault} Fault
 * @typedef {{text: string, base: number, ok: boolean, problems: Fault[], diff?: string}} Checked
 */

/** What was typed and not applied yet, and the version that it was made of. It stays while the console is open. */
const draft = signal(/** @type {{text: string, base: number}|null} */ (null));

/** @param {{doc: Doc, reload: () => void}} props */
export const Document = ({ doc, reload }) => (doc.source === 'file' ? html`<${OfFile} doc=${doc} reload=${reload} />` : html`<${OfStore} doc=${doc} reload=${reload} />`);

/** @param {{doc: Doc, reload: () => void}} props */
function OfStore({ doc, reload }) {
  const newest = doc.version ?? 0;
  const { text, base } = draft.value ?? { text: doc.text, base: newest };
  const [checked, setChecked] = useState(/** @type {Checked|null} */ (null));
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const [at, setAt] = useState(/** @type {Fault|null} */ (null));
  const of = checked?.text === text && checked.base === base && base === newest ? checked : null;
  const type = (/** @type {string} */ now) => { draft.value = now === doc.text && base === newest ? null : { text: now, base }; };
  const request = { method: 'POST', path: '/config/check', body: { text } };
  const check = async (/** @type {number} */ of) => {
    setError(null);
    try {
      setChecked({ ...await call(request), text, base: of });
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
  };
  useEffect(() => {
    if (!draft.value) return undefined;
    const ask = (/** @type {Event} */ e) => e.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [draft.value === null]);
  const drop = () => { draft.value = null; setChecked(null); };
  const applied = (/** @type {number} */ version) => { drop(); say(`Version ${version} is in force.`); reload(); };
  return html`
    ${base !== newest && html`<${Meanwhile} base=${base} newest=${newest} keep=${() => { draft.value = { text, base: newest }; check(newest); }} drop=${drop} />`}
    <${Card} title=${doc.source === 'none' ? 'Nobody has written one yet' : `Version ${base}`} aside=${html`<small>${draft.value ? 'changed, not applied' : 'in force'}</small>`}>
      ${doc.source === 'none' && html`<p class="note">${doc.text.trim() ? 'This is what is in force now, detected providers included.' : html`Nothing is set, so the defaults are <a href="#/config/force">in force</a>. <a href="#/providers?add=any">Add a provider</a>, or write.`} Once you apply it, changed or as it is, Limen keeps it with all its versions.</p>`}
      <${Editor} label="The document" text=${text} set=${mayChange() ? type : undefined} faults=${of?.problems} at=${at} />
      ${mayChange() && html`
        <div class="row">
          <button type="button" class=${of?.ok ? '' : 'primary'} disabled=${base !== newest} onClick=${() => check(base)}>Check</button>
          ${draft.value && html`<button type="button" onClick=${drop}>Undo all</button>`}
          <${AsCurl} of=${request} />
        </div>
        ${error && html`<${Problem} error=${error} />`}
        <div role="status">${of && html`<${Verdict} of=${of} />`}${checked && !of && base === newest && html`<p class="note">The text was changed after the check. Check it again to apply it.</p>`}</div>
        ${of && !of.ok && html`<${Faults} of=${of.problems} go=${(/** @type {Fault} */ f) => setAt({ ...f })} />`}
        ${of?.ok && (of.diff || !newest) && html`<${Apply} of=${of} applied=${applied} conflict=${() => { draft.value = { text, base }; reload(); }} />`}`}
    <//>`;
}

/** @param {{of: Checked}} props */
function Verdict({ of }) {
  if (!of.ok) return html`<h2>${of.problems.length === 1 ? 'One problem' : `${of.problems.length} problems`}</h2>`;
  const { added, removed } = changes(of.diff);
  return html`<h2>No problem. ${of.diff ? `Against what is in force: ${added} added, ${removed} removed.` : 'It is what is in force.'}</h2>`;
}

/** Faults lead to their lines. @param {{of: Fault[], go: (fault: Fault) => void}} props */
const Faults = ({ of, go }) => html`
  <ol class="mistakes">${of.map((f) => html`
    <li>
      <p><button type="button" class="small" onClick=${() => go(f)}>Line ${f.line}</button><span>${f.message}</span></p>
      ${f.snippet && html`<pre>${f.snippet}</pre>`}
      ${f.hint && html`<p class="hint">${f.hint}</p>`}
    </li>`)}</ol>`;

/** @param {{of: Checked, applied: (version: number) => void, conflict: () => void}} props */
function Apply({ of, applied, conflict }) {
  const request = (/** @type {Record<string, string>} */ values) => ({ method: 'PUT', path: '/config/document', body: { text: of.text, base: of.base, note: values.note } });
  const send = async (/** @type {Record<string, string>} */ values) => {
    try {
      applied((await call(request(values))).version);
    } catch (err) {
      if (/** @type {import('./api.js').APIError} */ (err).code === 'version_conflict') conflict();
      throw err;
    }
  };
  return html`
    ${of.diff && html`<${Diff} text=${of.diff} label="What applying changes" />`}
    <${Form} send=${send} label="Apply" request=${request}>
      <${Field} label="Note" name="note" maxlength="200" placeholder="why" hint="For the history. It can be left out." />
    <//>`;
}

/** Meanwhile tells that somebody else saved. @param {{base: number, newest: number, keep: () => void, drop: () => void}} props */
function Meanwhile({ base, newest, keep, drop }) {
  const version = useGet('/config/versions/' + newest);
  return html`
    <div class="notice warn" role="alert">
      <h2>Version ${newest} was saved while you were writing</h2>
      <p>What you wrote is kept below. It was made of version ${base}, so nothing of it was applied.</p>
      <${Loaded} of=${version}>${(/** @type {import('./confighistory.js').Saved} */ v) => html`
        <p>By ${v.by}, ${ago(v.at)}${v.note ? `, with the note “${v.note}”` : ''}. It changed:</p>
        <${Diff} text=${v.diff} label=${`What version ${newest} changed`} />`}<//>
      <div class="row">
        <button type="button" class="primary" onClick=${keep}>Keep mine, and compare it with version ${newest}</button>
        <button type="button" onClick=${drop}>Drop mine, take version ${newest}</button>
      </div>
    </div>`;
}

/** A file rules: it is shown, and how it differs from what is in force. @param {{doc: Doc, reload: () => void}} props */
function OfFile({ doc, reload }) {
  const request = { method: 'POST', path: '/config/reload' };
  const read = () => call(request).then(() => say('The file was read again.'), (err) => say(err.message)).then(reload);
  const { problem, diff } = doc.drift ?? {};
  return html`
    ${doc.drift && html`
      <div class=${`notice ${problem ? 'bad' : 'warn'}`} role="alert">
        <h2>${problem ? 'The file was not taken' : 'The file is not what is in force'}</h2>
        ${problem ? html`<pre>${problem}</pre><p>The last good one stays in force. Mend the file; it is read again when it changes.</p>`
          : html`<p>It has not been read since it was changed.</p>`}
        ${diff && html`<p>From what is in force to the file:</p><${Diff} text=${diff} label="From what is in force to the file" />`}
        ${mayChange() && html`<div class="row"><button type="button" onClick=${read}>Read the file again</button><${AsCurl} of=${request} /></div>`}
      </div>`}
    <${Card} title="A file rules" aside=${html`<code>${doc.path}</code>`}>
      <p class="note">Limen was started with this file, so it is changed there, and read again when it changes. Secrets in it are not shown.
        To keep the configuration here instead, with versions, start Limen without a file and paste the text.</p>
      <${Editor} label="The file" text=${doc.text} />
      <${AsCurl} of=${{ path: '/config/document' }} />
    <//>`;
}
