// A turn of the playground: what was asked, and what each model said. All of it is text.
import { Cost } from '../calltable.js';
import { count, duration } from '../format.js';
import { html } from '../html.js';
import { link } from '../route.js';

/** @param {{of: import('./request.js').Asked}} props */
export const Asked = ({ of }) => html`
  <div class="turn asked"><small>You</small>
    ${of.images.length > 0 && html`<div class="thumbs">${of.images.map((url, i) => html`<img src=${url} alt=${`Image ${i + 1} that you sent`} />`)}</div>`}
    <div class="text">${of.text}</div>
  </div>`;

/** pretty is a JSON text with its members on lines of their own. @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** What a client is told in place of an answer. @param {{of: import('./stream.js').Refusal}} props */
function Refusal({ of }) {
  const after = of.status === 200 ? 'The stream ended with an error' : of.status ? `The gateway answered ${of.status}` : 'Nothing came';
  return html`<div class="refusal" role="alert"><strong>${after}</strong><pre tabindex="0" aria-label="What a client is told">${pretty(of.text)}</pre></div>`;
}

/**
 * @param {{of: import('./stream.js').Answer, last: boolean, busy: boolean, result: (call: string, text: string) => void, send: () => void}} props
 */
export function Answered({ of, last, busy, result, send }) {
  return html`
    <article class="card turn" aria-label=${`Answer of ${of.model}`} aria-busy=${of.took === undefined}>
      <small class="mono">${of.model}</small>
      ${of.thought && html`<details><summary>Reasoning</summary><div class="text note">${of.thought}</div></details>`}
      ${(of.text || !of.calls.length) && html`<div class="text">${of.text}${of.took === undefined && html`<span class="caret" aria-hidden="true"></span>`}</div>`}
      ${of.calls.map((call) => html`<${Called} key=${call.id} call=${call} value=${of.results[call.id] ?? ''} open=${last && of.took !== undefined} set=${(text) => result(call.id, text)} />`)}
      ${last && of.calls.length > 0 && of.took !== undefined && html`<div><button type="button" disabled=${busy} onClick=${send}>Send the results</button></div>`}
      ${of.stopped && html`<p class="note">Stopped.</p>`}
      ${of.refusal && html`<${Refusal} of=${of.refusal} />`}
      ${of.took !== undefined && html`<${Figures} of=${of} />`}
    </article>`;
}

/** @param {{call: import('./stream.js').ToolCall, value: string, open: boolean, set: (text: string) => void}} props */
function Called({ call, value, open, set }) {
  return html`
    <div class="called"><strong>${call.function.name}</strong><pre tabindex="0" aria-label=${`Arguments of ${call.function.name}`}>${pretty(call.function.arguments)}</pre>
      ${open ? html`<textarea rows="2" aria-label=${`Result of ${call.function.name}`} placeholder="What the function gives back" value=${value} onInput=${(e) => set(e.currentTarget.value)}></textarea>`
        : value && html`<pre tabindex="0" aria-label=${`Result of ${call.function.name}`}>${value}</pre>`}
    </div>`;
}

/** @param {{of: import('./stream.js').Answer}} props */
function Figures({ of }) {
  const r = of.record;
  const tokens = r ? `${count(r.total_tokens - r.output_tokens - r.reasoning_tokens)} in, ${count(r.output_tokens + r.reasoning_tokens)} out` : of.usage ? `${count(of.usage.prompt_tokens)} in, ${count(of.usage.completion_tokens)} out` : '';
  return html`
    <dl class="figures">
      <div><dt>First token</dt><dd>${of.first ? duration(of.first) : 'none'}</dd></div>
      <div><dt>Total</dt><dd>${duration(of.took ?? 0)}</dd></div>
      ${tokens && html`<div><dt>Tokens</dt><dd>${r?.estimated ? '~' : ''}${tokens}</dd></div>`}
      ${r && html`<div><dt>Cost</dt><dd><${Cost} of=${r.cost_usd} /></dd></div>`}
      ${of.finish && of.finish !== 'stop' && html`<div><dt>Ended by</dt><dd>${of.finish}</dd></div>`}
      ${of.id && html`<div><dt>Record</dt><dd><a href=${link(['calls', of.id])}>the call</a></dd></div>`}
    </dl>`;
}
