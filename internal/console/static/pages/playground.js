// @ts-nocheck
// Playground: one prompt, one model or two beside each other, through /v1 as any client.
import { get, secrets } from '../api.js';
import { duration } from '../format.js';
import { html, useRef, useState } from '../html.js';
import { link, route, setQuery } from '../route.js';
import { Card, Empty, Field, Loaded, Page, useLoad } from '../ui.js';

/** @typedef {{role: string, content: string}} Turn */

export default function Playground() {
  const models = useLoad((signal) => get('/models', signal), []);
  return html`
    <${Page} title="Playground" lead="Chat through /v1, as any client does: with a key, its limits, and a record of each call.">
      <${Loaded} of=${models}>${(d) => (d.models.length === 0
        ? html`<${Empty} title="There is no model to talk to yet"><p>Models come from providers. <a href="#/providers">See how they are doing</a></p><//>`
        : html`<${Talk} models=${d.models.map((m) => m.id)} />`)}<//>
    <//>`;
}

function Talk({ models }) {
  const q = route.value.query;
  const left = models.includes(q.get('model')) ? q.get('model') : models[0];
  const right = models.includes(q.get('beside')) ? q.get('beside') : '';
  const [key, setKey] = useState([...secrets.values()].pop() ?? '');
  const [system, setSystem] = useState('');
  const [prompt, setPrompt] = useState('');
  const [runs, setRuns] = useState(/** @type {{prompt: string, answers: Record<string, Answer>}[]} */ ([]));
  const leave = useRef(/** @type {AbortController|null} */ (null));
  const [busy, setBusy] = useState(false);

  const send = async (e) => {
    e.preventDefault();
    const at = runs.length;
    const asked = [left, right].filter((m, i, all) => m && all.indexOf(m) === i);
    setRuns((old) => [...old, { prompt, answers: Object.fromEntries(asked.map((m) => [m, { text: '' }])) }]);
    setPrompt('');
    setBusy(true);
    const stop = leave.current = new AbortController();
    await Promise.all(asked.map((model) => {
      const turns = /** @type {Turn[]} */ (system ? [{ role: 'system', content: system }] : []);
      for (const run of runs) if (run.answers[model]?.text) turns.push({ role: 'user', content: run.prompt }, { role: 'assistant', content: run.answers[model].text });
      turns.push({ role: 'user', content: prompt });
      return stream(key.trim(), model, turns, stop.signal, (answer) => setRuns((old) => old.map((run, i) => (i === at ? { ...run, answers: { ...run.answers, [model]: { ...run.answers[model], ...answer } } } : run))));
    }));
    setBusy(false);
  };
  return html`
    <${Card}>
      <div class="fields">
        <${Field} label="Key" type="password" autocomplete="off" value=${key} placeholder="limen_…" onInput=${(e) => setKey(e.currentTarget.value)} hint="It stays in this page." />
        <${Field} label="Model" onChange=${(e) => setQuery({ model: e.currentTarget.value })}>${models.map((m) => html`<option value=${m} selected=${m === left}>${m}</option>`)}<//>
        <${Field} label="Beside it" onChange=${(e) => setQuery({ beside: e.currentTarget.value })}><option value="">nothing</option>${models.map((m) => html`<option value=${m} selected=${m === right}>${m}</option>`)}<//>
      </div>
      <details><summary>System prompt</summary><textarea rows="3" aria-label="System prompt" value=${system} onInput=${(e) => setSystem(e.currentTarget.value)}></textarea></details>
    <//>
    <div class="talk" aria-live="polite">${runs.map((run) => html`
      <div class="turn asked"><small>You</small><div class="text">${run.prompt}</div></div>
      <div class="two">${Object.entries(run.answers).map(([model, a]) => html`
        <div class="card turn"><small>${model}</small>
          ${a.thought && html`<details><summary>Reasoning</summary><div class="text note">${a.thought}</div></details>`}
          <div class="text">${a.text}</div>
          ${a.error && html`<p class="problem" role="alert">${a.error}</p>`}
          ${a.took !== undefined && html`<small>${duration(a.took)}${a.first ? `, first token after ${duration(a.first)}` : ''}${a.id ? html` · <a href=${link(['calls', a.id])}>the call</a>` : ''}</small>`}
        </div>`)}</div>`)}</div>
    <form onSubmit=${send}>
      <div class="field"><label for="prompt">Prompt</label>
        <textarea id="prompt" rows="4" required placeholder="Ask something. Ctrl+Enter sends." value=${prompt} onInput=${(e) => setPrompt(e.currentTarget.value)}
          onKeyDown=${(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) e.currentTarget.form.requestSubmit(); }}></textarea></div>
      <div class="form-end"><button class="primary" disabled=${busy || !key.trim()}>Send</button>
        ${busy && html`<button type="button" onClick=${() => leave.current?.abort()}>Stop</button>`}
        ${!key.trim() && html`<small>A key is needed: paste one above, or <a href="#/keys/new">make one</a>.</small>`}</div>
    </form>`;
}

/** @typedef {{text: string, thought?: string, error?: string, id?: string, first?: number, took?: number}} Answer */

/**
 * stream asks a model and tells what comes.
 * @param {string} key @param {string} model @param {Turn[]} messages @param {AbortSignal} signal @param {(a: Partial<Answer>) => void} tell
 */
async function stream(key, model, messages, signal, tell) {
  const began = performance.now();
  let text = '', thought = '', first = 0;
  try {
    const answer = await fetch('/v1/chat/completions', {
      method: 'POST', signal, credentials: 'omit',
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + key },
      body: JSON.stringify({ model, messages, stream: true }),
    });
    tell({ id: answer.headers.get('x-request-id') ?? undefined });
    if (!answer.ok || !answer.body) throw new Error((await answer.json()).error.message);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; ;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
        const event = JSON.parse(line.slice(6));
        if (event.error) throw new Error(event.error.message);
        const delta = event.choices?.[0]?.delta ?? {};
        text += delta.content ?? '';
        thought += delta.reasoning_content ?? delta.reasoning ?? '';
        if (!first && (text || thought)) first = performance.now() - began;
        tell({ text, thought, first });
      }
    }
  } catch (err) {
    tell({ error: signal.aborted ? 'Stopped.' : /** @type {Error} */ (err).message });
  }
  tell({ took: performance.now() - began });
}
