// A text with the numbers of its lines. Tab leaves it, as it leaves every field.
import { html, useEffect, useRef } from './html.js';

/**
 * @param {{text: string, label: string, set?: (text: string) => void, faults?: import('./api.js').Fault[], at?: {line: number, column: number}|null}} props
 *   set is absent for a text that is only shown; at is where the caret is wanted, a new object each time
 */
export function Editor({ text, label, set, faults = [], at }) {
  const field = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const numbers = useRef(/** @type {HTMLElement|null} */ (null));
  const follow = () => { if (numbers.current && field.current) numbers.current.scrollTop = field.current.scrollTop; };
  useEffect(() => { if (at && field.current) reach(field.current, at); }, [at]);
  const lines = text.split('\n');
  const bad = new Set(faults.map((f) => f.line));
  return html`
    <div class="editor">
      <div class="numbers" ref=${numbers} aria-hidden="true"><pre>${lines.map((_, i) => html`<span class=${bad.has(i + 1) ? 'bad' : undefined}>${bad.has(i + 1) ? '! ' : ''}${i + 1}${'\n'}</span>`)}</pre></div>
      <textarea ref=${field} aria-label=${label} wrap="off" spellcheck=${false} autocomplete="off" autocapitalize="off" readonly=${!set} aria-invalid=${bad.size ? 'true' : undefined}
        rows=${Math.min(Math.max(lines.length + 1, 12), 32)} value=${text} onScroll=${follow} onInput=${(e) => set?.(e.currentTarget.value)}></textarea>
    </div>`;
}

/** reach puts the caret to a place, and that line into view. @param {HTMLTextAreaElement} field @param {{line: number, column: number}} at */
function reach(field, { line, column }) {
  const lines = field.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const before = Array.from(lines[line - 1] ?? '').slice(0, column - 1).join('').length;
  field.focus({ preventScroll: true });
  field.setSelectionRange(start + before, start + (lines[line - 1] ?? '').length);
  field.scrollTop = (line - 4) * parseFloat(getComputedStyle(field).lineHeight);
  field.scrollIntoView({ block: 'nearest' });
}
