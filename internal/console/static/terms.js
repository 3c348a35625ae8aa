// What keys and teams have in common: budgets and limits, shown and asked for.
import { ago, count, money } from './format.js';
import { html } from './html.js';
import { Field } from './ui.js';

/** @typedef {import('../types').Budget} Budget */
/** @typedef {import('../types').Limits} Limits */

const periods = /** @type {Record<string, string>} */ ({ day: 'a day', week: 'a week', month: 'a month', total: 'in all' });

/** Budgets shows how much is spent of each. @param {{of: Budget[], none?: any}} props */
export const Budgets = ({ of, none = html`<span class="note">no budget</span>` }) => (of.length === 0 ? none : html`<div class="stack">${of.map((b) => html`<${BudgetBar} of=${b} />`)}</div>`);

/** @param {{of: Budget}} props */
function BudgetBar({ of }) {
  const used = Number(of.spent ?? 0) / Number(of.amount) || 0;
  const tone = used >= 1 ? 'bad' : used >= 0.8 ? 'warn' : '';
  const label = `${money(of.spent ?? '0')} of ${money(of.amount)} ${periods[of.period] ?? of.period}`;
  return html`
    <div class="budget">
      <p><span>${label}${of.soft ? ', soft' : ''}</span>${of.renews && html`<small title=${of.renews}>renews ${ago(of.renews)}</small>`}</p>
      <progress class=${tone} max="100" value=${Math.min(100, used * 100)} aria-label=${label}></progress>
      ${Number(of.held ?? 0) > 0 && html`<small>${money(of.held)} held for calls under way</small>`}
    </div>`;
}

const limitNames = /** @type {[keyof Limits, string][]} */ ([['rpm', 'requests a minute'], ['tpm', 'tokens a minute'], ['rpd', 'requests a day'], ['concurrency', 'at once']]);

/** @param {{of?: Limits}} props */
export function Limits({ of = {} }) {
  const set = limitNames.filter(([name]) => of[name]);
  if (!set.length) return html`<span class="note">no limits</span>`;
  return html`${set.map(([name, what]) => html`<div>${count(of[name])} ${what}</div>`)}`;
}

/** TermFields asks for budgets and limits. @param {{budgets?: Budget[], limits?: Limits}} props */
export const TermFields = ({ budgets = [], limits = {} }) => html`
  <${Field} label="Budgets" name="budgets" placeholder="5/month, 1/day" value=${budgets.map(written).join(', ')}
    hint="Dollars a day, week, month or total, in a time zone if you like: 20/week@Europe/Berlin. With “soft” behind it nothing is refused, only told." />
  <fieldset class="fields"><legend class="away">Limits</legend>
    ${limitNames.map(([name, what]) => html`<${Field} label=${what[0].toUpperCase() + what.slice(1)} name=${name} type="number" min="0" step="1" placeholder="no limit" value=${limits[name] ?? ''} />`)}
  </fieldset>`;

/** @param {Budget} b */
const written = (b) => `${b.amount}/${b.period}${b.zone ? '@' + b.zone : ''}${b.soft ? ' soft' : ''}`;

/** list is what stands between commas. @param {string} [text] */
export const list = (text = '') => text.split(',').map((t) => t.trim()).filter(Boolean);

/** terms are the members of a request that TermFields asks for. @param {Record<string, string>} values */
export function terms(values) {
  const limits = /** @type {Limits} */ ({});
  for (const [name] of limitNames) limits[name] = Number(values[name] || 0);
  return { budgets: list(values.budgets), limits };
}

/** without takes out of a request for something new what says nothing. @param {Record<string, any>} body */
export function without(body) {
  const out = /** @type {Record<string, any>} */ ({});
  for (const [name, value] of Object.entries(body)) {
    const v = value && typeof value === 'object' && !Array.isArray(value) ? without(value) : value;
    const nothing = v === '' || v === undefined || v === false || v === 0 || Array.isArray(v) && !v.length || v && typeof v === 'object' && !Array.isArray(v) && !Object.keys(v).length;
    if (!nothing) out[name] = v;
  }
  return out;
}
