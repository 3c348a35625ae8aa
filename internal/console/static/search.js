// Search, in a window over any page.
import { get } from './api.js';
import { html, useEffect, useRef, useState } from './html.js';
import { go } from './route.js';
import { useModal } from './ui.js';

/** @typedef {{kind: string, text: string, more?: string, path: string[]}} Hit */

/**
 * Search finds pages and what has a page of its own.
 * @param {{pages: [name: string, page: {title: string}][], reads: boolean, close: () => void}} props
 *   pages that may be opened, and whether the one who is logged in sees models and providers
 */
export function Search({ pages, reads, close }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [things, setThings] = useState(/** @type {Hit[]} */ (pages.map(([name, p]) => ({ kind: 'Page', text: p.title, path: [name] }))));
  useModal(ref);
  useEffect(() => {
    const leave = new AbortController();
    const add = (/** @type {string} */ path, /** @type {(d: any) => Hit[]} */ hits) => get(path, leave.signal).then((d) => setThings((old) => [...old, ...hits(d)]), () => {});
    add('/keys', (d) => d.keys.map((/** @type {any} */ k) => ({ kind: 'Key', text: k.name, more: k.prefix + k.id, path: ['keys', k.id] })));
    add('/teams', (d) => d.teams.map((/** @type {any} */ t) => ({ kind: 'Team', text: t.name, path: ['teams', t.id] })));
    if (reads) add('/models', (d) => d.models.map((/** @type {any} */ m) => ({ kind: 'Model', text: m.id, path: ['models', m.id] })));
    if (reads) add('/providers', (d) => d.providers.map((/** @type {any} */ p) => ({ kind: 'Provider', text: p.name, more: p.base_url, path: ['providers', p.name] })));
    return () => leave.abort();
  }, []);
  const wanted = text.trim().toLowerCase();
  const hits = things.filter((t) => `${t.kind} ${t.text} ${t.more ?? ''}`.toLowerCase().includes(wanted)).slice(0, 12);
  if (wanted.startsWith('req_')) hits.unshift({ kind: 'Call', text: text.trim(), path: ['calls', text.trim()] });
  const open = (/** @type {Hit} */ hit) => { close(); go(hit.path); };
  const key = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) {
      e.preventDefault();
      setAt((n) => (n + step + hits.length) % Math.max(hits.length, 1));
    }
    if (e.key === 'Enter' && hits[at]) {
      e.preventDefault();
      open(hits[at]);
    }
  };
  return html`
    <dialog ref=${ref} class="search" aria-label="Search" onClose=${() => ref.current && close()} onCancel=${(e) => { e.preventDefault(); close(); }} onClick=${(e) => { if (e.target === ref.current) close(); }}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="hits" aria-activedescendant=${hits[at] && `hit-${at}`} aria-label="Search keys, models, teams, calls and pages"
        placeholder="Key, model, team, page, or a request ID" autocomplete="off" spellcheck=${false} value=${text} onInput=${(e) => { setText(e.currentTarget.value); setAt(0); }} onKeyDown=${key} />
      <ul id="hits" role="listbox" aria-label="Found">
        ${hits.map((hit, i) => html`<li id=${`hit-${i}`} role="option" aria-selected=${i === at} onClick=${() => open(hit)} onMouseMove=${() => setAt(i)}><span>${hit.text}${hit.more && html` <small>${hit.more}</small>`}</span><small>${hit.kind}</small></li>`)}
      </ul>
      ${!hits.length && html`<p class="nothing">Nothing has that in its name.</p>`}
    </dialog>`;
}
