// The parts that pages are made of.
import { curl, get } from './api.js';
import { html, shown, signal, useEffect, useLayoutEffect, useRef, useState } from './html.js';

/** @typedef {import('./html.js').Value} Children what stands within a component */

/**
 * useLoad asks for something now, whenever what it depends on changes, and every so many
 * milliseconds while the page can be seen, or always.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} on
 * @param {number} [every]
 * @param {boolean} [always]
 * @returns {{data?: T, error?: Error, reload: () => void}}
 */
export function useLoad(load, on, every = 0, always = false) {
  const [state, set] = useState(/** @type {{data?: T, error?: Error}} */ ({}));
  const [turn, again] = useState(0);
  useEffect(() => {
    const leave = new AbortController();
    let timer = 0;
    const ask = async () => {
      clearTimeout(timer);
      if (always || !document.hidden) {
        try {
          const data = await load(leave.signal);
          if (!leave.signal.aborted) set({ data });
        } catch (err) {
          if (!leave.signal.aborted) set((old) => ({ ...old, error: /** @type {Error} */ (err) }));
        }
      }
      if (every && !leave.signal.aborted) timer = setTimeout(ask, every);
    };
    const seen = () => { if (every && !document.hidden) ask(); };
    document.addEventListener('visibilitychange', seen);
    ask();
    return () => {
      leave.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [...on, turn]);
  return { ...state, reload: () => again((n) => n + 1) };
}

/**
 * useGet is useLoad of one path.
 * @template {string} Path
 * @param {Path} path
 * @param {number} [every]
 */
export const useGet = (path, every) => useLoad((signal) => get(path, signal), [path], every);

/**
 * Loaded shows what was asked for, or how it stands with it.
 * @param {{of: {data?: any, error?: Error, reload: () => void}, children?: any}} props its child makes a page of what came
 */
export function Loaded({ of, children }) {
  if (of.data === undefined && of.error) return html`<${Problem} error=${of.error} retry=${of.reload} />`;
  if (of.data === undefined) return html`<div class="loading" role="status"><span class="away">Loading</span></div>`;
  return html`${of.error && html`<${Problem} error=${of.error} retry=${of.reload} />`}${children(of.data)}`;
}

/** @param {{error: Error, retry?: () => void}} props */
export function Problem({ error, retry }) {
  return html`<div class="problem" role="alert"><p>${error.message}</p>${retry && html`<button type="button" onClick=${retry}>Try again</button>`}</div>`;
}

/** @param {{title: string, lead?: Children, actions?: Children, children?: Children}} props */
export function Page({ title, lead, actions, children }) {
  useEffect(() => { document.title = shown(`${title} · Limen`); }, [title]);
  return html`
    <header class="page-head">
      <div><h1 tabindex="-1">${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}`;
}

/** @param {{title?: Children, aside?: Children, children?: Children, [attribute: string]: any}} props */
export const Card = ({ title, aside, children, ...rest }) => html`
  <section class="card" ...${rest}>
    ${title && html`<header><h2>${title}</h2>${aside}</header>`}
    ${children}
  </section>`;

/** Empty says what would be here, and how it comes. @param {{title: string, children?: Children}} props */
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** @param {{label: string, value: Children, note?: Children, tone?: string}} props */
export const Stat = ({ label, value, note, tone }) => html`
  <div class="stat"><dt>${label}</dt><dd class=${tone}>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;

/** @param {{tone?: 'good'|'bad'|'warn'|'plain', children?: Children}} props */
export const Badge = ({ tone = 'plain', children }) => html`<span class="badge ${tone}">${children}</span>`;

/** @param {{at: string, say: string}} props */
export const Time = ({ at, say }) => html`<time datetime=${at} title=${at}>${say}</time>`;

/** Copy puts a text into the clipboard. @param {{text: string, label?: string}} props */
export function Copy({ text, label = 'Copy' }) {
  const [done, set] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      set('Copied');
    } catch {
      set('Select it to copy');
    }
    setTimeout(() => set(''), 2000);
  };
  return html`<button type="button" class="small" onClick=${copy} aria-live="polite">${done || label}</button>`;
}

/** Code is a text to be taken elsewhere. @param {{text: string, label: string}} props */
export const Code = ({ text, label }) => html`
  <div class="code"><pre tabindex="0" aria-label=${label}><code>${text}</code></pre><${Copy} text=${text} /></div>`;

/** AsCurl shows what an action asks of the admin API. @param {{of: import('./api.js').Request}} props */
export const AsCurl = ({ of }) => html`<details class="curl"><summary>as curl</summary><${Code} text=${curl(of)} label="as curl" /></details>`;

/** What was just done, for a moment. */
export const said = signal('');
let saidTimer = 0;
/** @param {string} text */
export function say(text) {
  said.value = text;
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => { said.value = ''; }, 5000);
}

/** useModal shows a dialog before all else; when it goes, the focus is again where it was. @param {{current: HTMLDialogElement|null}} ref */
export function useModal(ref) {
  useLayoutEffect(() => { // before the effects of fields, which want the focus
    const opener = /** @type {HTMLElement|null} */ (document.activeElement);
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (opener?.isConnected) opener.focus();
    };
  }, []);
}

/**
 * Dialog is a window of its own: Escape closes it, and focus stays in it.
 * @param {{title: string, close: () => void, wide?: boolean, children?: Children}} props
 */
export function Dialog({ title, close, wide, children }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useModal(ref);
  return html`
    <dialog ref=${ref} class=${wide ? 'wide' : ''} aria-label=${title} onClose=${() => ref.current && close()}
      onCancel=${(e) => { e.preventDefault(); close(); }}>
      <header><h2>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${close}>✕</button></header>
      ${children}
    </dialog>`;
}

/**
 * Form asks for something and does it. send is given the form's texts.
 * @param {{send: (values: Record<string, string>) => Promise<void>, label: string, tone?: string, request?: (values: Record<string, string>) => import('./api.js').Request, cancel?: () => void, children?: Children}} props
 */
export function Form({ send, label, tone = 'primary', request, cancel, children }) {
  const ref = useRef(/** @type {HTMLFormElement|null} */ (null));
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const [busy, setBusy] = useState(false);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const now = () => Object.fromEntries(/** @type {any} */ (new FormData(/** @type {HTMLFormElement} */ (ref.current))));
  useEffect(() => setValues(now()), []);
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await send(now());
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
    setBusy(false);
  };
  return html`
    <form ref=${ref} onSubmit=${submit} onInput=${() => setValues(now())}>
      ${children}
      ${error && html`<${Problem} error=${error} />`}
      <div class="form-end">
        <button class=${tone} disabled=${busy}>${label}</button>
        ${cancel && html`<button type="button" onClick=${cancel}>Cancel</button>`}
        ${request && html`<${AsCurl} of=${request(values)} />`}
      </div>
    </form>`;
}

let fields = 0;
/** Field is an input, or a select where it has options. @param {{label: string, hint?: Children, children?: Children, autofocus?: boolean, [attribute: string]: any}} props */
export function Field({ label, hint, children, autofocus = false, ...given }) {
  // What is typed into a form stays when the page around it is drawn anew.
  const { value, ...rest } = given;
  const input = 'value' in given && !given.onInput && !given.onChange ? { ...rest, defaultValue: value } : given;
  const [id] = useState(() => `field-${++fields}`);
  useEffect(() => { if (autofocus) document.getElementById(id)?.focus(); }, []);
  return html`
    <div class="field"><label for=${id}>${label}</label>
      ${children ? html`<select id=${id} ...${input}>${children}</select>` : html`<input id=${id} autocomplete="off" spellcheck=${false} aria-describedby=${hint && id + '-hint'} ...${input} />`}
      ${hint && html`<p class="hint" id=${id + '-hint'}>${hint}</p>`}
    </div>`;
}

/**
 * Table is rows by columns; on narrow screens each row is a card.
 * @param {{label: string, columns: {name: string, cell: (row: any) => any, number?: boolean, wide?: boolean}[], rows: any[], id: (row: any) => string}} props
 */
export const Table = ({ label, columns, rows, id }) => html`
  <div class="table-wrap"><table>
    <caption class="away">${label}</caption>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.number ? 'number' : ''}>${c.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`
      <tr key=${id(row)}>${columns.map((c) => html`<td data-name=${c.name} class=${`${c.number ? 'number' : ''} ${c.wide ? 'wide' : ''}`}>${c.cell(row)}</td>`)}</tr>`)}
    </tbody>
  </table></div>`;
