// What came of a client: the box that waits for its first request, and says what was wrong with it.
import { get, query } from './api.js';
import { duration } from './format.js';
import { html, useEffect, useRef, useState } from './html.js';
import { link, setQuery } from './route.js';
import { useLoad } from './ui.js';

/**
 * @typedef {import('../types').Arrival} Arrival
 * @typedef {import('../types').Arrivals} Arrivals
 * @typedef {{id: string, name: string}} Key
 * @typedef {{name: string, title: string}} Client
 */

/** Clients that ask for streams unless they are told not to. */
const streaming = new Set(['aider', 'claude', 'cline', 'codex', 'continue', 'cursor', 'librechat', 'open-webui', 'opencode', 'qwen-code', 'zed']);

/** What sort of fault it was, in a few words; the gateway's own say the rest. @type {Record<string, (a: Arrival) => string>} */
const faults = {
  not_found: (a) => (a.operation ? 'It asked for what is not there' : `Wrong path: it asked ${a.path}`),
  bad_method: (a) => `Wrong method: it sent ${a.method} ${a.path}`,
  unauthenticated: (a) => (a.code ? 'Wrong key' : 'No key'),
  forbidden: () => 'The key may not do this',
  no_model: (a) => `Unknown model: ${a.model}`,
  rate_limited: () => 'Too much at once',
  over_budget: () => 'The budget is used up',
  client_closed: () => 'The client left before the answer',
};

/** @param {Arrival} a */
const faultOf = (a) => {
  const error = a.error ?? '';
  if (faults[error]) return faults[error](a);
  return error.startsWith('upstream') ? 'The provider failed' : a.recorded && (a.status ?? 0) >= 500 ? 'The gateway could not serve it' : 'A request that cannot be served';
};

/**
 * sorted tells what came of a client: what it was served, what was wrong instead or since then, and what others did meanwhile.
 * @param {Arrival[]} all the newest last
 * @param {{client: string, key: string, from: string}} wanted from: when it was chosen, by the gateway's clock
 */
export function sorted(all, { client, key, from }) {
  /** @param {Arrival} a */
  const isOurs = (a) => (a.clients.length === 0 ? Date.parse(a.time) > Date.parse(from) : a.clients.includes(client) || client === 'curl' && a.clients.includes('browser'));
  const ours = all.filter(isOurs);
  const served = ours.filter((a) => !a.error && !a.under_way && a.operation !== 'models');
  const mine = served.filter((a) => a.key === key);
  const first = mine.find((a) => a.stream) ?? mine[0];
  return {
    served: first,
    otherKey: served.find((a) => a.key !== key),
    underWay: ours.find((a) => a.under_way),
    listed: ours.some((a) => !a.error && a.operation === 'models' && a.key === key),
    faults: ours.filter((a) => a.error && (!first || Date.parse(a.time) > Date.parse(first.time))),
    others: all.filter((a) => !isOurs(a) && !a.under_way && a.clients.length > 0),
  };
}

/**
 * useArrivals asks what came since the page was opened, also while it is not seen: the client is elsewhere.
 * @param {string} key whose calls at other gateways count, too
 */
export function useArrivals(key) {
  const since = useRef('');
  return useLoad(async (signal) => {
    /** @type {Arrivals} */
    const d = await get('/arrivals' + query({ since: since.current }), signal);
    if (!since.current) d.arrivals = [];
    since.current ||= d.now;
    if (d.gateways > 1) d.arrivals.push(...await elsewhere(key, since.current, d.arrivals, signal));
    return { ...d, since: since.current };
  }, [key], 1000, true).data ?? null; // the rest of the page tells when the gateway is away
}

/**
 * elsewhere are calls of a key that another gateway recorded, which does not tell their client.
 * @param {string} key @param {string} since @param {Arrival[]} known @param {AbortSignal} signal
 * @returns {Promise<Arrival[]>}
 */
async function elsewhere(key, since, known, signal) {
  const ids = new Set(known.map((a) => a.request_id));
  const { calls } = await get('/calls' + query({ key, since, limit: 5 }), signal);
  return calls.filter((/** @type {Arrival} */ c) => !ids.has(c.request_id)).reverse()
    .map((/** @type {Arrival} */ c) => ({ ...c, times: 1, address: '', method: 'POST', path: '', clients: [], recorded: true }));
}

/**
 * Box waits for a client.
 * @param {{client: Client, of: Key, keys: Key[], titles: Record<string, string>, send?: () => Promise<void>}} props
 */
export function Box({ client, of, keys, titles, send }) {
  const all = useArrivals(of.id);
  const [from, setFrom] = useState('');
  const chosen = client.name + ' ' + of.id;
  useEffect(() => { setFrom(all?.now ?? ''); }, [chosen, !all]);
  if (!all) return html`<div class="wait" role="status"><span class="pulse"></span><div><strong>Looking</strong></div></div>`;
  const came = sorted(all.arrivals, { client: client.name, key: of.id, from: from || all.since });
  const tried = all.arrivals.findLast((a) => a.clients.includes('browser') && a.key === of.id && !a.error && !a.under_way);
  const tone = came.served ? 'arrived' : came.faults.length || came.otherKey ? 'wrong' : '';
  return html`
    <div class=${`wait ${tone}`} role="status"><span class="pulse"></span>
      <div class="stack">
        <${Said} client=${client} of=${of} keys=${keys} came=${came} />
        ${came.served && !came.served.stream && streaming.has(client.name) && html`<p class="warn">It did not ask for a stream, which ${client.title} normally does: answers appear all at once. Look for a setting about streaming.</p>`}
        ${came.faults.length > 0 && html`<${Faults} of=${came.faults} keys=${keys} later=${Boolean(came.served)} />`}
        ${tried && client.name !== 'curl' && html`<p>This browser called ${tried.model}: address, key and model are right.</p>`}
        <${Others} of=${came.others} titles=${titles} />
        ${all.note && html`<p>${all.note}</p>`}
      </div>
      ${send && !came.served && html`<button type="button" class="small" onClick=${send} title="The call that curl would make, from this browser through the gateway">Send it from here</button>`}
    </div>`;
}

/** @param {{client: Client, of: Key, keys: Key[], came: ReturnType<typeof sorted>}} props */
function Said({ client, of, keys, came }) {
  const { served, otherKey, underWay, listed } = came;
  if (served) {
    const who = served.clients.includes('browser') ? 'This browser' : client.title;
    return html`<div><strong>It works</strong><p>${who} called ${served.model}${served.stream && ', streaming'}: ${served.status} after ${duration(served.total_ms ?? 0)}.
      ${' '}${served.recorded && html`<a href=${link(['calls', served.request_id])}>Look at it</a>`}</p></div>`;
  }
  if (underWay) return html`<div><strong>${client.title} is here</strong><p>Its call is under way.</p></div>`;
  if (otherKey) {
    return html`<div><strong>It came with another key</strong><p>${client.title} called ${otherKey.model} with ${nameOf(otherKey, keys)}, which works. This turns green when it comes with ${of.name}.</p></div>`;
  }
  if (came.faults.length) return html`<div><strong>It came, and something is wrong</strong><p>This turns green when it is right.</p></div>`;
  if (listed) return html`<div><strong>${client.title} has read the list of models</strong><p>Address and key are right. This turns green with its first call.</p></div>`;
  return html`<div><strong>Waiting for ${client.title} with ${of.name}</strong><p>This turns green as soon as it arrives.</p></div>`;
}

/** @param {Arrival} a @param {Key[]} keys */
const nameOf = (a, keys) => keys.find((k) => k.id === a.key)?.name ?? `${a.key_prefix ?? ''}${a.key ?? ''}…`;

/** Faults in the order in which they came. @param {{of: Arrival[], keys: Key[], later: boolean}} props */
const Faults = ({ of, keys, later }) => html`
  <ol class="faults">${of.slice(-4).map((a) => html`
    <li key=${a.request_id}>
      <strong>${faultOf(a)}</strong>${a.times > 1 && html` <span class="note">${a.times} times</span>`}${later && html` <span class="note">since then</span>`}
      <p>${a.message || `The answer was ${a.status}.`}${a.error === 'unauthenticated' && a.key && html` It begins as that of ${nameOf(a, keys)}.`}
        ${a.recorded && html` <a href=${link(['calls', a.request_id])}>Look at it</a>`}</p>
      <p class="note">${a.method} ${a.path}${a.address && `, from ${a.address}`}${a.agent && `, ${a.agent}`}</p>
    </li>`)}
  </ol>`;

/** What others did meanwhile, the newest of each. @param {{of: Arrival[], titles: Record<string, string>}} props */
function Others({ of, titles }) {
  const newest = new Map(of.filter((a) => titles[a.clients[0]]).map((a) => [a.clients[0], a]));
  if (!newest.size) return null;
  return html`<p>Meanwhile ${[...newest].map(([name, a], i) => html`${i > 0 && ', '}<button type="button" class="plain link" onClick=${() => setQuery({ client: name })}>${titles[name]}</button> ${a.error ? 'was refused' : 'was here'}`)}.</p>`;
}
