// Calls in a table, and how one is told in a word.
import { ago, count, duration, money, short, time } from './format.js';
import { html } from './html.js';
import { link } from './route.js';
import { Badge, Table, Time } from './ui.js';

/**
 * @typedef {import('../types').Call} Call
 * @typedef {import('../types').Step} Step
 */

/** @param {{call: Call}} props */
export const Outcome = ({ call }) => html`<${Badge} tone=${call.error || call.status >= 400 ? 'bad' : 'good'}>${call.status || 'gone'}${call.error ? ' ' + call.error : ''}<//>`;

/** Cost of a call. @param {{of: string|null}} props */
export const Cost = ({ of }) => (of === null ? html`<span class="unknown">unknown</span>` : html`<span title=${'$' + of}>${money(of)}</span>`);

/** @param {{calls: Call[]}} props */
export const CallTable = ({ calls }) => html`
  <${Table} label="Calls" rows=${calls} id=${(c) => c.request_id} columns=${[
    { name: 'Model', cell: (c) => html`<a href=${link(['calls', c.request_id])}>${c.model || '(no model)'}</a>${c.provider && `${c.provider}/${c.upstream_model}` !== c.model && html`<small>${c.provider}/${c.upstream_model}</small>`}` },
    { name: 'When', cell: (c) => html`<${Time} at=${c.time} say=${Date.now() - Date.parse(c.time) < 3600000 ? ago(c.time) : time(c.time)} />` },
    { name: 'Key', cell: (c) => html`<a href=${link(['keys', c.key])}>${c.key_name || c.key}</a>` },
    { name: 'Outcome', cell: (c) => html`<${Outcome} call=${c} />` },
    { name: 'First byte', number: true, cell: (c) => duration(c.first_byte_ms) },
    { name: 'Total', number: true, cell: (c) => duration(c.total_ms) },
    { name: 'Tokens', number: true, cell: (c) => html`<span title=${count(c.total_tokens)}>${c.estimated ? '~' : ''}${short(c.total_tokens)}</span>` },
    { name: 'Cost', number: true, cell: (c) => html`<${Cost} of=${c.cost_usd} />` },
  ]} />`;
