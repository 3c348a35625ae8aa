// Users: who may use the console, and what each may do.
import { call, mayAppoint, user } from '../api.js';
import { ago, time } from '../format.js';
import { html, useState } from '../html.js';
import { Once, password } from '../once.js';
import { roles } from '../roles.js';
import { go, link } from '../route.js';
import { Sessions } from '../sessions.js';
import { AsCurl, Badge, Card, Dialog, Field, Form, Loaded, Page, Table, Time, say, useGet } from '../ui.js';

/** @typedef {import('../../types').User & {via?: string}} Person */
/** @typedef {Record<string, string>} Values of a form */

const at = (/** @type {Person} */ u) => '/users/' + encodeURIComponent(u.id);

/** @param {{rest: string[]}} props */
export default function Users({ rest }) {
  const users = useGet('/users', 10000);
  const [open, setOpen] = useState(/** @type {{what: string, of?: any}|null} */ (null));
  const close = () => { setOpen(null); if (rest[0]) go(['users']); };
  const done = (/** @type {string} */ text) => { close(); say(text); users.reload(); };
  const once = (/** @type {Person} */ of) => { setOpen({ what: 'once', of }); users.reload(); };
  const creating = rest[0] === 'new' && mayAppoint() && !open;
  return html`
    <${Page} title="Users" lead="People who log in to this console. Programs take an admin token; clients of models a key."
      actions=${mayAppoint() && html`<a class="button primary" href="#/users/new">New user</a>`}>
      <${Loaded} of=${users}>${(/** @type {{users: Person[]}} */ { users: all }) => html`
        <${Card}><${Table} label="Users" rows=${all} id=${(/** @type {Person} */ u) => u.id} columns=${columns(setOpen)} />
          <${AsCurl} of=${{ path: '/users' }} /><//>`}<//>
      <${Card} title="What each role may do">
        <dl class="facts">${Object.entries(roles).map(([name, r]) => html`<dt><${Badge} tone=${r.tone}>${name}<//></dt><dd>${r.say}</dd>`)}</dl>
      <//>
      ${mayAppoint() && html`<${Sessions} title="Sessions" />`}
      ${creating && html`<${Create} close=${close} done=${once} />`}
      ${open?.what === 'change' && html`<${Change} of=${open.of} close=${close} done=${() => done('Changed.')} />`}
      ${open?.what === 'reset' && html`<${Reset} of=${open.of} close=${close} done=${once} />`}
      ${open?.what === 'delete' && html`
        <${Dialog} title=${`Delete “${open.of.name}”?`} close=${close}>
          <p>The sessions of ${open.of.name} end at once, and nobody can log in with that name. What they did stays in the audit log.</p>
          <${Form} send=${async () => { await call({ method: 'DELETE', path: at(open.of) }); done('Deleted.'); }} label="Delete" tone="danger" request=${() => ({ method: 'DELETE', path: at(open.of) })} cancel=${close} />
        <//>`}
      ${open?.what === 'once' && html`
        <${Once} title=${`Password of “${open.of.name}”`} say=${`Give it to ${open.of.name}, who can change it under My account.`} text=${open.of.password ?? ''} label="The new password" close=${close} />`}
    <//>`;
}

/** @param {(open: {what: string, of: Person}) => void} open */
function columns(open) {
  const list = [
    { name: 'Name', cell: (/** @type {Person} */ u) => html`${u.name} ${u.name === user.value?.name && html`<${Badge} tone="good">you<//>`}` },
    { name: 'Role', cell: (/** @type {Person} */ u) => html`<${Badge} tone=${roles[u.role]?.tone}>${u.role}<//>` },
    { name: 'Team', cell: (/** @type {Person} */ u) => (u.team ? html`<a href=${link(['teams', u.team])}>${u.team}</a>` : html`<span class="note">all</span>`) },
    { name: 'Logs in by', cell: (/** @type {Person} */ u) => (u.via === 'oidc' ? 'single sign-on' : 'password') },
    { name: 'Last login', cell: (/** @type {Person} */ u) => html`<${Time} at=${u.last_login ?? ''} say=${ago(u.last_login)} />${u.created && html`<small>made ${time(u.created).slice(0, 10)}</small>`}` },
  ];
  if (!mayAppoint()) return list;
  const button = (/** @type {Person} */ u, /** @type {string} */ what, /** @type {string} */ label, tone = '') => html`
    <button type="button" class=${`small ${tone}`} aria-label=${`${label} ${u.name}`} onClick=${() => open({ what, of: u })}>${label}</button>`;
  return [...list, {
    name: 'Actions', cell: (/** @type {Person} */ u) => (u.id === 'admin'
      ? html`<div class="row">${button(u, 'reset', 'Reset password')}</div>`
      : html`<div class="row">${button(u, 'change', 'Change')}${u.via !== 'oidc' && button(u, 'reset', 'Reset password')}${button(u, 'delete', 'Delete', 'danger')}</div>`),
  }];
}

/** RoleFields asks for a role, and for the team of a member. @param {{of?: Partial<Person>}} props */
function RoleFields({ of = {} }) {
  const [role, setRole] = useState(of.role ?? 'viewer');
  const teams = useGet('/teams');
  const names = (teams.data?.teams ?? []).map((/** @type {{name: string}} */ t) => t.name);
  return html`
    <${Field} label="Role" name="role" hint=${roles[role].say} onChange=${(/** @type {any} */ e) => setRole(e.currentTarget.value)}>
      ${Object.keys(roles).map((name) => html`<option value=${name} selected=${name === role}>${name}</option>`)}<//>
    ${role === 'member' && (names.length || !teams.data
      ? html`<${Field} label="Team" name="team" required>${names.map((/** @type {string} */ name) => html`<option value=${name} selected=${name === of.team}>${name}</option>`)}<//>`
      : html`<p class="note">A member needs a team. <a href="#/teams/new">Make the first one</a></p>`)}`;
}

const terms = (/** @type {Values} */ values) => ({ role: values.role, ...(values.role === 'member' ? { team: values.team } : {}) });

/** @param {{close: () => void, done: (made: Person) => void}} props */
function Create({ close, done }) {
  const request = (/** @type {Values} */ values) => ({ method: 'POST', path: '/users', body: { name: values.name, ...terms(values) } });
  return html`
    <${Dialog} title="New user" close=${close}>
      <${Form} send=${async (/** @type {Values} */ values) => done(await call(request(values)))} label="Make the user" request=${request} cancel=${close}>
        <${Field} label="Name" name="name" required maxlength="200" autofocus placeholder="ann" hint="What they log in with." />
        <${RoleFields} />
      <//>
    <//>`;
}

/** @param {{of: Person, close: () => void, done: () => void}} props */
function Change({ of, close, done }) {
  const request = (/** @type {Values} */ values) => ({ method: 'PATCH', path: at(of), body: terms(values) });
  return html`
    <${Dialog} title=${`Change “${of.name}”`} close=${close}>
      <p class="note">It counts from the next click on, also where ${of.name} is logged in.</p>
      <${Form} send=${async (/** @type {Values} */ values) => { await call(request(values)); done(); }} label="Change" request=${request} cancel=${close}>
        <${RoleFields} of=${of} />
      <//>
    <//>`;
}

/** @param {{of: Person, close: () => void, done: (made: Person) => void}} props */
function Reset({ of, close, done }) {
  const [made] = useState(password);
  const request = (/** @type {string} */ text) => (of.id === 'admin' ? { method: 'POST', path: '/admin/password', body: { password: text } } : { method: 'PATCH', path: at(of), body: { password: text } });
  const send = async () => { await call(request(made)); done({ ...of, password: made }); };
  return html`
    <${Dialog} title=${`Reset the password of “${of.name}”?`} close=${close}>
      <p>The password of now no longer works, and the sessions of ${of.name} end${of.name === user.value?.name ? ', also this one: note the new password before you go on' : ''}. The new one is shown once.</p>
      <${Form} send=${send} label="Reset the password" tone="danger" request=${() => request('…')} cancel=${close} />
    <//>`;
}
