// Teams: budgets and limits that keys share.
import { call, get, mayChange, seesAll } from '../api.js';
import { time } from '../format.js';
import { html, useState } from '../html.js';
import { go, link } from '../route.js';
import { AsCurl, Card, Dialog, Empty, Field, Form, Loaded, Page, Table, say, useGet, useLoad } from '../ui.js';
import { Budgets, Limits, TermFields, terms, without } from '../terms.js';

/** @typedef {import('../../types').Team} Team */
/** @typedef {Record<string, string>} Values of a form */

/** @param {{rest: string[]}} props */
export default function Teams({ rest }) {
  return rest[0] && rest[0] !== 'new' ? html`<${One} id=${rest[0]} />` : html`<${List} creating=${rest[0] === 'new'} />`;
}

/** @param {{creating: boolean}} props */
function List({ creating }) {
  const teams = useGet('/teams', 10000);
  const close = () => go(['teams']);
  const request = (/** @type {Values} */ values) => ({ method: 'POST', path: '/teams', body: without({ name: values.name, parent: values.parent, ...terms(values) }) });
  return html`
    <${Page} title="Teams" lead="A team's budgets and limits bound all of its keys together. A team can belong to another."
      actions=${mayChange() && html`<a class="button primary" href="#/teams/new">New team</a>`}>
      <${Loaded} of=${teams}>${(/** @type {{teams: Team[]}} */ { teams: all }) => html`
        ${all.length === 0
          ? html`<${Empty} title="No team yet"><p>Keys work without one. With a team, what its keys spend counts together: give it a budget, and put keys into it.</p>${mayChange() && html`<a class="button primary" href="#/teams/new">New team</a>`}<//>`
          : html`<${Card}><${Table} label="Teams" rows=${all} id=${(/** @type {Team} */ t) => t.id} columns=${[
              { name: 'Name', cell: (/** @type {Team} */ t) => html`<a href=${link(['teams', t.id])}>${t.name}</a>` },
              { name: 'Belongs to', cell: (/** @type {Team} */ t) => t.parent ?? html`<span class="note">none</span>` },
              { name: 'Budgets', cell: (/** @type {Team} */ t) => html`<${Budgets} of=${t.budgets} />` },
              { name: 'Limits', cell: (/** @type {Team} */ t) => html`<${Limits} of=${t.limits} />` },
            ]} /><//>`}
        ${creating && mayChange() && html`
          <${Dialog} title="New team" close=${close}>
            <${Form} send=${async (/** @type {Values} */ values) => { await call(request(values)); teams.reload(); say('The team is made.'); close(); }} label="Make the team" request=${request} cancel=${close}>
              <${Field} label="Name" name="name" required maxlength="200" autofocus placeholder="web" />
              <${Parent} all=${all} />
              <${TermFields} />
            <//>
          <//>`}`}<//>
    <//>`;
}

/** @param {{all: Team[], of?: Partial<Team>}} props */
const Parent = ({ all, of = /** @type {Partial<Team>} */ ({}) }) => html`
  <${Field} label="Belongs to" name="parent"><option value="">none</option>${all.filter((t) => t.id !== of.id).map((t) => html`<option value=${t.name} selected=${t.name === of.parent}>${t.name}</option>`)}<//>`;

/** @param {{id: string}} props */
function One({ id }) {
  const path = /** @type {const} */ (`/teams/${encodeURIComponent(id)}`);
  const team = useGet(path, 5000);
  const all = useGet('/teams');
  const users = useLoad(async (signal) => (seesAll() ? (await get('/users', signal)).users : []), []);
  const [open, setOpen] = useState('');
  const close = () => setOpen('');
  const request = (/** @type {Values} */ values) => ({ method: 'PATCH', path, body: { name: values.name, parent: values.parent || null, ...terms(values) } });
  return html`<${Loaded} of=${team}>${(/** @type {Team} */ t) => {
    const people = (users.data ?? []).filter((u) => u.team === t.name);
    return html`
    <${Page} title=${t.name} lead=${html`<span class="crumb"><a href="#/teams">Teams</a>${t.parent && all.data?.teams.some((p) => p.name === t.parent) && html` / <a href=${link(['teams', t.parent])}>${t.parent}</a>`}</span>`}
      actions=${mayChange() && html`<button type="button" onClick=${() => setOpen('edit')}>Change</button><button type="button" class="danger" onClick=${() => setOpen('delete')}>Delete</button>`}>
      <div class="two">
        <${Card} title="Budgets"><${Budgets} of=${t.budgets} none=${html`<p class="note">This team may spend without end.</p>`} /><//>
        <${Card} title="Team">
          <dl class="facts"><dt>Limits</dt><dd><${Limits} of=${t.limits} /></dd><dt>Created</dt><dd>${time(t.created)}</dd><dt>ID</dt><dd class="mono">${t.id}</dd></dl>
        <//>
        <${Card} title="Members">
          <ul>${(t.teams ?? []).map((m) => html`<li><a href=${link(['teams', m.id])}>${m.name}</a> <small>team</small></li>`)}
            ${(t.keys ?? []).map((m) => html`<li><a href=${link(['keys', m.id])}>${m.name}</a> <small>key</small></li>`)}
            ${people.map((u) => html`<li>${u.name} <small>person</small></li>`)}</ul>
          ${!t.keys?.length && !t.teams?.length && !people.length && html`<p class="note">Nobody belongs to it yet. A key is put into a team where it is made or changed.</p>`}
        <//>
      </div>
      <p class="row"><a href=${link(['calls'], { team: t.id })}>Its calls</a><a href=${link(['usage'], { team: t.id })}>Its usage</a>${mayChange() && html`<a href=${link(['keys', 'new'], { team: t.name })}>New key in it</a>`}</p>
      <${AsCurl} of=${{ path }} />
      ${open === 'edit' && html`
        <${Dialog} title=${`Change “${t.name}”`} close=${close}>
          <${Form} send=${async (/** @type {Values} */ values) => { await call(request(values)); close(); say('Changed.'); team.reload(); }} label="Change" request=${request} cancel=${close}>
            <${Field} label="Name" name="name" required maxlength="200" value=${t.name} />
            <${Parent} all=${all.data?.teams ?? []} of=${t} />
            <${TermFields} budgets=${t.budgets} limits=${t.limits} />
          <//>
        <//>`}
      ${open === 'delete' && html`
        <${Dialog} title=${`Delete “${t.name}”?`} close=${close}>
          <p>A team can be deleted when nothing belongs to it. Records of its calls stay.</p>
          <${Form} send=${async () => { await call({ method: 'DELETE', path }); say('Deleted.'); go(['teams']); }} label="Delete" tone="danger" request=${() => ({ method: 'DELETE', path })} cancel=${close} />
        <//>`}
    <//>`; }}<//>`;
}
