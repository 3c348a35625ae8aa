// The attempts of a call, as bars over its time.
import { duration } from './format.js';
import { html } from './html.js';
import { sheet } from './sheet.js';

await sheet('call.css');

/** @typedef {import('./calltable.js').Call} Call */
/** @typedef {import('./calltable.js').Step} Step */

/** stepsOf are the targets of a call: the one that answered at once is no step of its record. @param {Call} of @returns {Step[]} */
function stepsOf(of) {
  if (of.steps?.length) return of.steps;
  if (!of.provider) return [];
  return [{ target: `${of.provider}/${of.upstream_model}`, account: of.account ?? '', result: of.error || 'ok', tried: true, at_ms: 0, took_ms: of.first_byte_ms || of.total_ms }];
}

/** @param {{of: Call}} props */
export function Waterfall({ of }) {
  const steps = stepsOf(of);
  if (!steps.length) return html`<p class="note">It was refused before any upstream was asked${of.error ? `: ${of.error}` : ''}.</p>`;
  const whole = Math.max(of.total_ms, ...steps.map((s) => s.at_ms + (s.took_ms ?? 0)), 0.001);
  const x = (/** @type {number} */ ms) => `${Math.min(100, ms / whole * 100)}%`;
  return html`
    <p class="note">${why(steps)}</p>
    <ol class="falls">${steps.map((s) => {
      const ok = s.result === 'ok';
      const took = s.took_ms || (ok ? Math.max(0, of.first_byte_ms - s.at_ms) : 0); // what answered has no time of its own
      const end = s.at_ms + took;
      return html`
        <li class=${!s.tried ? 'skipped' : ok ? 'ok' : 'failed'}>
          <div><strong>${s.target}</strong><br /><small>${s.account}</small></div>
          <svg role="img" aria-label=${s.tried ? `from ${duration(s.at_ms)}, for ${duration(took)}${ok ? `, then until ${duration(of.total_ms)}` : ''}` : 'not asked'}>
            ${[25, 50, 75].map((at) => html`<line x1=${at + '%'} x2=${at + '%'} y1="0" y2="100%" />`)}
            ${s.tried && html`<rect x=${x(s.at_ms)} width=${x(Math.max(took, whole / 200))} height="100%" rx="3" />`}
            ${s.tried && ok && html`<rect class="rest" x=${x(end)} width=${x(Math.max(0, whole - end))} height="100%" />`}
          </svg>
          <p class="result note">${!s.tried ? `not asked: ${s.result}` : ok ? `answered after ${duration(took || 0.1)}${whole > end ? `, then told for ${duration(whole - end)}` : ''}` : `${s.result}, after ${duration(took)}`}</p>
        </li>`;
    })}
      <li class="axis" aria-hidden="true"><span></span><p class="note"><span>0</span><span>${duration(whole / 2)}</span><span>${duration(whole)}</span></p></li>
    </ol>`;
}

/** @param {Step[]} steps */
function why(steps) {
  const tried = steps.filter((s) => s.tried);
  const left = steps.length - tried.length;
  const others = left ? ` ${left === 1 ? 'One target was' : `${left} targets were`} not asked.` : '';
  if (!tried.length) return 'No target could serve it.' + others;
  if (tried[tried.length - 1].result !== 'ok') return `${tried.length === 1 ? 'Its one attempt' : `All ${tried.length} attempts`} failed.` + others;
  return (tried.length === 1 ? 'The first target answered.' : `Answered at attempt ${tried.length}: ${tried.slice(0, -1).map((s) => `${s.target} said ${s.result}`).join(', ')}.`) + others;
}
