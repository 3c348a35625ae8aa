// A real call of a provider, and what to change when it fails.
import { call, mayChange } from './api.js';
import { duration } from './format.js';
import { html, useEffect, useState } from './html.js';
import { AsCurl, Card, Field } from './ui.js';

/** @typedef {{ok: boolean, model?: string, answer?: string, first_token_ms?: number, total_ms?: number, error?: string, status?: number}} Outcome */

/** @param {string} provider @param {string} [model] */
const requestOf = (provider, model) => ({ method: 'POST', path: `/providers/${encodeURIComponent(provider)}/test`, body: model ? { model } : {} });

/** Test is the card of a provider that makes a call. @param {{provider: string, models?: string[], change: () => void}} props */
export function Test({ provider, models = [], change }) {
  const [model, setModel] = useState('');
  const [turn, setTurn] = useState(0);
  if (!mayChange()) return null;
  return html`
    <${Card} title="Test it" aside=${html`<small>one short call, at its price</small>`}>
      <${Field} label="Model" onChange=${(e) => setModel(e.currentTarget.value)}><option value="">one that Limen picks</option>${[...new Set(models)].slice(0, 500).map((m) => html`<option value=${m}>${m}</option>`)}<//>
      <div class="row"><button type="button" class="primary" onClick=${() => setTurn(turn + 1)}>Make a call</button><${AsCurl} of=${requestOf(provider, model)} /></div>
      ${turn > 0 && html`<${Call} key=${turn} provider=${provider} model=${model} change=${change} />`}
    <//>`;
}

/** Call makes the call when it is shown, and says how it stands. @param {{provider: string, model?: string, change?: () => void, done?: (ok: boolean) => void}} props */
export function Call({ provider, model, change, done }) {
  const [outcome, set] = useState(/** @type {Outcome|null} */ (null));
  const [began] = useState(() => Date.now());
  const [, tick] = useState(0);
  useEffect(() => {
    const leave = new AbortController();
    const timer = setInterval(() => tick((n) => n + 1), 500);
    const end = (/** @type {Outcome} */ o) => {
      if (leave.signal.aborted) return;
      clearInterval(timer);
      set(o);
      done?.(o.ok);
    };
    call(requestOf(provider, model), leave.signal).then(end, (err) => end({ ok: false, error: err.message }));
    return () => { leave.abort(); clearInterval(timer); };
  }, []);
  return html`<div role="status">${!outcome
    ? html`<div class="wait"><span class="pulse" aria-hidden="true"></span><div><strong>${provider} is called</strong><p>${duration(Math.floor((Date.now() - began) / 500) * 500)}</p></div></div>`
    : outcome.ok ? html`
      <div class="notice good">
        <h2>It works</h2>
        <p><code>${outcome.model}</code> said: “${outcome.answer}”</p>
        <p class="note">First token after ${duration(outcome.first_token_ms ?? 0)}, all of it after ${duration(outcome.total_ms ?? 0)}.</p>
      </div>`
    : html`
      <div class="notice bad">
        <h2>It does not work${outcome.status ? `: ${outcome.status}` : ''}</h2>
        <pre>${outcome.error}</pre>
        <p>${advice(outcome)}</p>
        ${change && html`<div class="row"><button type="button" onClick=${change}>Change the key or the address</button></div>`}
      </div>`}</div>`;
}

/** advice is what to change. @param {Outcome} outcome */
function advice({ status, error = '' }) {
  if (status === 401 || status === 403) return 'The key is not taken. Paste it anew, whole; see that it is of this vendor, and may use this model.';
  if (status === 402 || /quota|billing|credit|balance/i.test(error)) return 'The account has nothing left to spend. Pay at the vendor, or use a key of another account.';
  if (status === 404) return 'Nothing is there, or the model is not. See that the base URL is right: it usually ends in /v1. Else try another model.';
  if (status === 429) return 'The vendor limits calls of this key. Wait a minute and test it again.';
  if (status && status >= 500) return 'That is a fault of the vendor. Test it again later; the key may be right.';
  if (status) return 'The vendor refuses the call. Try another model.';
  return 'The address is not reached from where Limen runs. See that the base URL is right, that the server runs, and that a firewall lets Limen there.';
}
