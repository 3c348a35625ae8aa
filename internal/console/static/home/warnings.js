// What should be looked at before others notice it.
import { count, money, percent } from '../format.js';
import { html } from '../html.js';
import { link } from '../route.js';
import { Card } from '../ui.js';

/**
 * @typedef {import('../terms.js').Budget} Budget
 * @typedef {import('../../types').Provider} Provider
 * @typedef {import('../../types').Model} Model
 * @typedef {import('../../types').UsageRow} Row
 * @typedef {{id: string, name: string, status?: string, budgets: Budget[]}} Owner a key or a team
 * @typedef {{tone: 'bad'|'warn', what: string, more: string, at: string, link: string}} Warning
 */

/** Where a warning about a budget begins: so much of it is spent. */
const much = 0.8;
/** Fewer records than these are only on their way to the store. */
const waiting = 100;

/** @param {string} page @param {Owner[]} owners @returns {Warning[]} */
const budgets = (page, owners) => owners.filter((o) => o.status !== 'revoked').flatMap((o) => o.budgets.flatMap((b) => {
  const part = Number(b.spent ?? 0) / Number(b.amount);
  if (!(part >= much)) return [];
  return [{ tone: part >= 1 && !b.soft ? /** @type {const} */ ('bad') : /** @type {const} */ ('warn'), what: `${o.name} has spent ${percent(part, 1)} of its budget`,
    more: `${money(b.spent)} of ${money(b.amount)} a ${b.period}${b.soft ? ', soft' : ''}`, at: link([page, o.id]), link: 'See it' }];
}));

/**
 * @param {{providers: Provider[], models: Model[], keys: Owner[], teams: Owner[], byModel: Row[], pending: number}} of
 * @returns {Warning[]}
 */
export function warningsOf({ providers, models, keys, teams, byModel, pending }) {
  const failing = new Map(models.flatMap((m) => m.health.filter((h) => h.state !== 'ok').map((h) => [h.target + h.account, h])));
  return [
    ...providers.filter((p) => p.error).map((p) => ({ tone: /** @type {const} */ ('bad'), what: `${p.name} does not answer`, more: p.error ?? '', at: link(['providers']), link: 'See providers' })),
    ...[...failing.values()].map((h) => ({ tone: /** @type {const} */ ('warn'), what: `${h.target} is ${h.state}`, more: h.last_error ?? '', at: link(['providers']), link: 'See providers' })),
    ...budgets('keys', keys), ...budgets('teams', teams),
    ...byModel.filter((r) => r.unpriced > 0).map((r) => ({
      tone: /** @type {const} */ ('warn'), what: `${r.model || 'A model'} has no known price`,
      more: `${count(r.unpriced)} ${r.unpriced === 1 ? 'call' : 'calls'} of today whose cost nobody knows`, at: link(['models', r.model ?? '']), link: 'See the model',
    })),
    ...(pending > waiting ? [{ tone: /** @type {const} */ ('warn'), what: `${count(pending)} records wait for the store`, more: 'Nothing is lost: they are in the journal.', at: link(['calls']), link: 'See calls' }] : []),
  ];
}

/** @param {{of: Warning[]}} props */
export const Warnings = ({ of }) => of.length > 0 && html`
  <${Card} title="To be looked at" aria-label="Warnings">
    <ul class="warnings">${of.map((w) => html`<li key=${w.what}><span class="light ${w.tone}"></span><div><strong>${w.what}</strong><p class="note">${w.more}</p></div><a href=${w.at}>${w.link}</a></li>`)}</ul>
  <//>`;

/** How it stands with each provider, by what its targets said last. @param {{providers: Provider[], models: Model[]}} props */
export function Lights({ providers, models }) {
  const lights = providers.map((p) => {
    const targets = new Map(models.flatMap((m) => m.health.filter((h) => h.target.startsWith(p.name + '/')).map((h) => [h.target + '\n' + h.account, h])));
    const all = [...targets.values()];
    const sick = all.filter((h) => h.state !== 'ok').length;
    const flying = all.reduce((n, h) => n + h.in_flight, 0);
    const tone = p.error ? 'bad' : sick ? 'warn' : 'good';
    const said = p.error ? 'does not answer' : sick ? `${sick} of ${all.length} targets rest` : `answers, ${count(p.models)} ${p.models === 1 ? 'model' : 'models'}`;
    return { name: p.name, tone, said: said + (flying ? `, ${flying} under way` : '') };
  });
  return html`<${Card} title="Upstreams" aside=${html`<a href="#/providers">All providers</a>`}>
    <ul class="warnings">${lights.map((l) => html`<li key=${l.name}><span class="light ${l.tone}"></span><div><strong>${l.name}</strong> <span class="note">${l.said}</span></div></li>`)}</ul><//>`;
}
