// The key that the playground calls with: typed, made in this tab, or made here.
import { call, mayChange, secrets, user } from '../api.js';
import { html, useState } from '../html.js';
import { AsCurl, Empty, Field, Problem, say } from '../ui.js';

/** hours that a key of the playground works. */
const life = 24;

/**
 * newKey is the request for one. A budget that must hold refuses models without a known price, so
 * where one of those is asked it only warns.
 * @param {boolean} priced
 */
function newKey(priced) {
  const now = new Date();
  return {
    method: 'POST', path: '/keys',
    body: {
      name: `playground ${user.value?.name} ${now.toISOString().slice(0, 19)}`, budgets: [priced ? '1/total' : '1/total soft'],
      operations: ['chat', 'models'], expires: new Date(now.getTime() + life * 3600_000).toISOString(),
    },
  };
}

/** @param {{value: string, set: (key: string) => void, use: (key: string) => void}} props set is told each letter, use the whole */
export const KeyField = ({ value, set, use }) => html`
  <${Field} label="Key" type="password" autocomplete="off" value=${value} placeholder="limen_…" onInput=${(e) => set(e.currentTarget.value)} onChange=${(e) => use(e.currentTarget.value.trim())} hint="It stays in this page." />`;

/** MakeKey has one made in one step. @param {{use: (key: string) => void, priced: boolean}} props */
export function MakeKey({ use, priced }) {
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const made = await call(newKey(priced));
      secrets.set(made.id, made.key);
      use(made.key);
      say('A key was made. It ends in a day.');
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
    setBusy(false);
  };
  return html`
    <${Empty} title="A key is needed, as for any client">
      ${mayChange() ? html`
        <p>Type one above, or have one made that may spend a dollar and ends in a day.</p>
        <button type="button" class="primary" disabled=${busy} onClick=${make}>Make a key for the playground</button>
        ${error && html`<${Problem} error=${error} />`}<${AsCurl} of=${newKey(priced)} />`
        : html`<p>Type one above. Who may change keys makes you one.</p>`}
    <//>`;
}
