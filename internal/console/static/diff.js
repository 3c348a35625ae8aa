// A unified diff, in colours, and with its signs for those who see none.
import { html } from './html.js';

const kinds = /** @type {Record<string, string>} */ ({ '+': 'added', '-': 'removed', '@': 'place' });

/** @param {{text?: string, label: string, none?: string}} props */
export function Diff({ text, label, none = 'Nothing differs.' }) {
  if (!text) return html`<p class="note">${none}</p>`;
  const lines = text.replace(/\n$/, '').split('\n').filter((line) => !/^(---|\+\+\+) /.test(line));
  return html`
    <div class="code diff"><pre tabindex="0" aria-label=${label}>${lines.map((line) => html`<span class=${kinds[line[0]]}>${line || ' '}${'\n'}</span>`)}</pre></div>`;
}

/** changes counts the lines of a diff. @param {string|undefined} text */
export function changes(text) {
  const lines = (text ?? '').split('\n');
  const n = (/** @type {string} */ sign) => lines.filter((line) => line[0] === sign && !line.startsWith(sign.repeat(3) + ' ')).length;
  return { added: n('+'), removed: n('-') };
}
