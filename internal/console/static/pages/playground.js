// Playground: a conversation with one model, or two beside each other, through /v1 as any client has it.
import { get, secrets, seesAll } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { route, setQuery } from '../route.js';
import { sheet } from '../sheet.js';
import { Card, Code, Empty, Field, Page, Problem, useLoad } from '../ui.js';
import { Answered, Asked } from '../play/answer.js';
import { snippets } from '../play/code.js';
import { KeyField, MakeKey } from '../play/key.js';
import { request, toolsProblem } from '../play/request.js';
import { begun, chat } from '../play/stream.js';

await sheet('play/play.css');

/**
 * @typedef {import('../play/request.js').Turn} Turn
 * @typedef {import('../play/request.js').Asked} Question
 * @typedef {import('../play/stream.js').Answer} Answer
 * @typedef {{id: string, usd_per_million_tokens?: {input?: number, output?: number}}} Model
 */

const efforts = ['none', 'minimal', 'low', 'medium', 'high'];
const patience = 8;

/** @param {Model} m */
const priced = (m) => m.usd_per_million_tokens?.input !== undefined && m.usd_per_million_tokens.output !== undefined;

/** visible are the models that a key may use; without one, those that there are. @param {string} key @param {AbortSignal} signal @returns {Promise<Model[]>} */
async function visible(key, signal) {
  const all = seesAll() ? get('/models', signal).then((d) => d.models) : [];
  if (!key) return all;
  const answer = await fetch('/v1/models', { signal, credentials: 'omit', headers: { Authorization: 'Bearer ' + key } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? `The gateway answered ${answer.status}.`);
  const known = new Map((await all).map((/** @type {Model} */ m) => [m.id, m]));
  return body.data.map((/** @type {Model} */ m) => known.get(m.id) ?? { id: m.id });
}

/** record is that of a call, which may come a moment after its client left. @param {string} id */
async function record(id) {
  for (let i = 0; i < patience; i++) {
    try {
      return await get('/calls/' + encodeURIComponent(id));
    } catch {
      await new Promise((done) => setTimeout(done, 100 << i));
    }
  }
  return undefined;
}

export default function Playground() {
  const q = route.value.query;
  const [key, setKey] = useState([...secrets.values()].pop() ?? '');
  const [used, use] = useState(key);
  const models = useLoad((signal) => visible(used, signal), [used]);
  const [settings, setSettings] = useState({ system: '', temperature: '', most: '', effort: '', tools: '' });
  const [turns, setTurns] = useState(/** @type {Turn[]} */ ([]));
  const [busy, setBusy] = useState(false);
  const [status, setStatus] = useState('');
  const [sent, setSent] = useState(/** @type {any[]} */ ([]));
  const leave = useRef(/** @type {AbortController|null} */ (null));
  useEffect(() => () => leave.current?.abort(), []);

  const list = models.data ?? [];
  const left = list.find((m) => m.id === q.get('model')) ?? list[0];
  const right = list.find((m) => m.id === q.get('beside'));
  const columns = [left, right].filter((m) => m !== undefined);
  const change = (/** @type {number} */ at, /** @type {number} */ column, /** @type {Partial<Answer>} */ part) => setTurns((old) => old.map((turn, i) => {
    if (i !== at) return turn;
    const { results, ...rest } = part;
    return { ...turn, answers: turn.answers.map((a, c) => (c === column && a ? { ...a, ...rest, ...(results ? { results } : {}) } : a)) };
  }));
  const take = (/** @type {string} */ whole) => { setKey(whole); use(whole); };
  const send = async (/** @type {Question|null} */ asked, /** @type {number} */ only = -1) => {
    const at = turns.length;
    const asking = columns.map((m, column) => ({ model: m.id, column })).filter((c) => only < 0 || c.column === only);
    const requests = asking.map((c) => request(c.model, settings, turns, asked, c.column));
    setTurns((old) => [...old, { asked, answers: columns.map((m, column) => (asking.some((c) => c.column === column) ? begun(m.id) : null)) }]);
    setSent(requests);
    setBusy(true);
    setStatus('');
    const stop = leave.current = new AbortController();
    await Promise.all(asking.map(async ({ model, column }, i) => {
      const id = await chat(requests[i], key.trim(), stop.signal, (part) => change(at, column, part));
      setStatus(`${model} is done.`);
      if (id) record(id).then((kept) => kept && change(at, column, { record: kept }));
    }));
    setBusy(false);
  };

  return html`
    <${Page} title="Playground" lead="Chat through /v1, as any client does: with a key, its limits, and a record of each call.">
      <${Card}>
        <div class="fields">
          <${KeyField} value=${key} set=${setKey} use=${take} />
          <${Field} label="Model" onChange=${(e) => setQuery({ model: e.currentTarget.value })}>${list.map((m) => html`<option value=${m.id} selected=${m.id === left?.id}>${m.id}</option>`)}<//>
          <${Field} label="Beside it" onChange=${(e) => setQuery({ beside: e.currentTarget.value })}><option value="">nothing</option>${list.map((m) => html`<option value=${m.id} selected=${m.id === right?.id}>${m.id}</option>`)}<//>
        </div>
        ${models.error && html`<${Problem} error=${models.error} retry=${models.reload} />`}
        <${SettingFields} of=${settings} set=${(part) => setSettings((old) => ({ ...old, ...part }))} />
      <//>
      ${!key.trim() && html`<${MakeKey} use=${take} priced=${columns.every(priced)} />`}
      ${models.data?.length === 0 ? html`<${Empty} title="There is no model to talk to yet"><p>Models come from providers. <a href="#/providers">See how they are doing</a></p><//>`
        : html`
          ${turns.length > 0 && html`<div class="talk">${turns.map((turn, at) => html`
            ${turn.asked && html`<${Asked} of=${turn.asked} />`}
            <div class="two">${turn.answers.map((a, column) => a && html`
              <${Answered} of=${a} last=${at === turns.length - 1} busy=${busy} send=${() => send(null, column)}
                result=${(call, text) => change(at, column, { results: { ...a.results, [call]: text } })} />`)}</div>`)}</div>`}
          <p class="away" role="status">${status}</p>
          <${Composer} busy=${busy} ready=${key.trim() !== '' && !!left && !toolsProblem(settings.tools)} send=${(asked) => send(asked)} stop=${() => leave.current?.abort()} />
          <div class="row">
            ${turns.length > 0 && html`<button type="button" disabled=${busy} onClick=${() => { setTurns([]); setSent([]); }}>Start anew</button>`}
            ${sent.length > 0 && html`<${AsCode} requests=${sent} />`}
          </div>`}
    <//>`;
}

/** @param {{of: import('../play/request.js').Settings, set: (part: Partial<import('../play/request.js').Settings>) => void}} props */
function SettingFields({ of, set }) {
  const wrong = toolsProblem(of.tools);
  return html`
    <details><summary>System prompt, temperature, tools</summary>
      <div class="stack">
        <div class="field"><label for="system">System prompt</label><textarea id="system" rows="3" value=${of.system} onInput=${(e) => set({ system: e.currentTarget.value })}></textarea></div>
        <div class="fields">
          <${Field} label="Temperature" type="number" min="0" max="2" step="0.1" placeholder="the model's" value=${of.temperature} onInput=${(e) => set({ temperature: e.currentTarget.value })} />
          <${Field} label="Max tokens" type="number" min="1" step="1" placeholder="the model's" value=${of.most} onInput=${(e) => set({ most: e.currentTarget.value })} />
          <${Field} label="Reasoning effort" onChange=${(e) => set({ effort: e.currentTarget.value })}><option value="">the model's</option>${efforts.map((e) => html`<option value=${e} selected=${e === of.effort}>${e}</option>`)}<//>
        </div>
        <div class="field"><label for="tools">Tools</label>
          <textarea id="tools" class="mono" rows="5" spellcheck=${false} aria-describedby="tools-hint" aria-invalid=${wrong !== ''} value=${of.tools} onInput=${(e) => set({ tools: e.currentTarget.value })}
            placeholder=${'[{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]'}></textarea>
          <p class="hint" id="tools-hint">${wrong ? html`<span class="wrong">${wrong}</span>` : 'Functions as JSON. What the model calls is shown, and you say what came of it.'}</p></div>
      </div>
    </details>`;
}

/** @param {File} file @returns {Promise<string>} */
const asURL = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(/** @type {string} */ (reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** @param {{busy: boolean, ready: boolean, send: (asked: Question) => void, stop: () => void}} props */
function Composer({ busy, ready, send, stop }) {
  const [text, setText] = useState('');
  const [images, setImages] = useState(/** @type {string[]} */ ([]));
  const add = async (/** @type {Iterable<File>} */ files) => {
    const urls = await Promise.all([...files].filter((f) => f.type.startsWith('image/')).map(asURL));
    setImages((old) => [...old, ...urls]);
  };
  const submit = (/** @type {Event} */ e) => {
    e.preventDefault();
    if (busy || !ready) return;
    send({ text, images });
    setText('');
    setImages([]);
  };
  return html`
    <form class="card" onSubmit=${submit}>
      <div class="field"><label for="prompt">Prompt</label>
        <textarea id="prompt" rows="3" required=${images.length === 0} placeholder="Ask something. Ctrl+Enter sends. Images can be pasted." value=${text} onInput=${(e) => setText(e.currentTarget.value)}
          onPaste=${(e) => { if (e.clipboardData.files.length) { e.preventDefault(); add(e.clipboardData.files); } }}
          onKeyDown=${(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) e.currentTarget.form.requestSubmit(); }}></textarea></div>
      ${images.length > 0 && html`<ul class="thumbs">${images.map((url, i) => html`<li><img src=${url} alt=${`Image ${i + 1}`} /><button type="button" class="small" aria-label=${`Take away image ${i + 1}`} onClick=${() => setImages((old) => old.filter((_, at) => at !== i))}>✕</button></li>`)}</ul>`}
      <div class="form-end"><button class="primary" disabled=${busy || !ready}>Send</button>
        ${busy && html`<button type="button" onClick=${stop}>Stop</button>`}
        <label class="button">Add images<input class="away" type="file" accept="image/*" multiple onChange=${(e) => { add(e.currentTarget.files); e.currentTarget.value = ''; }} /></label></div>
    </form>`;
}

/** What was sent last, the conversation before it included, as code; with two models, that of each. @param {{requests: any[]}} props */
function AsCode({ requests }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState('curl');
  return html`
    <details class="curl" onToggle=${(e) => setOpen(e.currentTarget.open)}><summary>copy as code</summary>
      ${open && html`<div class="stack">
        <div class="row" role="group" aria-label="Language">${['curl', 'Python', 'JavaScript'].map((n) => html`<button type="button" class="small" aria-pressed=${n === name} onClick=${() => setName(n)}>${n}</button>`)}</div>
        ${requests.map((r) => html`<${Code} label=${`${name} for ${r.model}`} text=${snippets(r).find((s) => s.name === name)?.text} />`)}
      </div>`}
    </details>`;
}
