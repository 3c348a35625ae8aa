// The shell: who is there, where they are, and the way elsewhere.
import { call, get, user } from './api.js';
import { html, render, signal, useEffect, useRef, useState } from './html.js';
import { go, link, route } from './route.js';
import { Problem, said, useModal } from './ui.js';
import { Login } from './pages/login.js';

/** All but members, who see what is their team's. */
const readers = ['owner', 'admin', 'viewer'];

/**
 * The pages, by the first part of their address. A page is fetched when it is opened first. One with
 * roles is for those only; one that is apart is not in the list of pages.
 * @type {Record<string, {title: string, load: () => Promise<any>, roles?: string[], apart?: boolean}>}
 */
const pages = {
  home: { title: 'Home', load: () => import('./pages/home.js'), roles: readers },
  connect: { title: 'Connect', load: () => import('./pages/connect.js'), roles: readers },
  keys: { title: 'Keys', load: () => import('./pages/keys.js') },
  teams: { title: 'Teams', load: () => import('./pages/teams.js') },
  calls: { title: 'Calls', load: () => import('./pages/calls.js') },
  usage: { title: 'Usage', load: () => import('./pages/usage.js') },
  models: { title: 'Models', load: () => import('./pages/models.js'), roles: readers },
  providers: { title: 'Providers', load: () => import('./pages/providers.js'), roles: readers },
  config: { title: 'Configuration', load: () => import('./pages/config.js'), roles: readers },
  playground: { title: 'Playground', load: () => import('./pages/playground.js'), roles: readers },
  users: { title: 'Users', load: () => import('./pages/users.js'), roles: readers },
  tokens: { title: 'Admin tokens', load: () => import('./pages/tokens.js'), roles: readers },
  audit: { title: 'Audit', load: () => import('./pages/audit.js'), roles: readers },
  account: { title: 'My account', load: () => import('./pages/account.js'), apart: true },
};

const may = (/** @type {{roles?: string[]}} */ page) => !page.roles || page.roles.includes(user.value?.role ?? '');

/** What the one who is logged in may open. */
const offered = () => Object.entries(pages).filter(([, page]) => may(page));

/** Where they begin. */
const first = () => offered()[0][0];

/** pageOf is the page of a name, if there is one. @param {string} [name] */
function pageOf(name = 'home') {
  return Object.hasOwn(pages, name) ? pages[name] : undefined;
}

// The first page is fetched while it is asked who is there.
pageOf(route.value.path[0])?.load().catch(() => {}); // it is asked for again, and then told of

const loaded = /** @type {Record<string, any>} */ ({});
const searching = signal(false);
const menu = signal(false);

function App() {
  useEffect(() => { begin(); }, []);
  if (user.value === undefined) return html`<div class="loading" role="status"><span class="away">Loading</span></div>`;
  if (user.value === null) return html`<${Login} problem=${problem.value} />`;
  return html`<${Shell} />`;
}

/** begin finds out who is there, or logs in by the link that a first start shows. */
async function begin() {
  const { path, query } = route.value;
  const link = path[0] === 'login' && query.get('link');
  if (link) location.replace('#/connect'); // what works once is not to be gone back to
  try {
    if (link) await call({ method: 'POST', path: '/session', body: { link } });
    user.value = (await call({ path: '/session' })).user;
  } catch (err) {
    user.value = null;
    if (link || /** @type {import('./api.js').APIError} */ (err).status !== 401) problem.value = /** @type {Error} */ (err);
  }
}

const problem = signal(/** @type {Error|null} */ (null));

function Shell() {
  const name = route.value.path[0] ?? first();
  const page = pageOf(name);
  const [, shown] = useState('');
  const [failed, setFailed] = useState(/** @type {Error|null} */ (null));
  useEffect(() => {
    menu.value = false;
    setFailed(null);
    if (!page || !may(page) || loaded[name]) return;
    page.load().then((m) => { loaded[name] = m.default; shown(name); }, () => setFailed(new Error('This page could not be fetched. Limen may have been updated.')));
  }, [name]);
  const fresh = useRef(true);
  useEffect(() => {
    if (!fresh.current) document.querySelector('main')?.focus({ preventScroll: true });
    if (!fresh.current) scrollTo(0, 0);
    fresh.current = false;
  }, [route.value.path.join('/')]);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ e) => {
      const at = /** @type {HTMLElement} */ (e.target);
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || at.closest('input, textarea, select, dialog')) return;
      e.preventDefault();
      searching.value = true;
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const Shown = page && loaded[name];
  return html`
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.querySelector('main')?.focus(); }}>Skip to content</a>
    <div class="shell">
      <${Side} at=${name} />
      <main id="main" tabindex="-1">
        ${failed ? html`<${Problem} error=${failed} retry=${() => location.reload()} />`
          : !page ? html`<div class="empty"><h1>There is no such page</h1><p><a href=${link([first()])}>${pages[first()].title}</a></p></div>`
          : !may(page) ? html`<div class="empty"><h1>${page.title} is not for you</h1><p>As ${user.value?.role} you see what belongs to your team. An owner can change that.</p><p><a href=${link([first()])}>${pages[first()].title}</a></p></div>`
          : Shown ? html`<${Shown} key=${route.value.path.join('/')} rest=${route.value.path.slice(1)} />`
          : html`<div class="loading" role="status"><span class="away">Loading</span></div>`}
      </main>
    </div>
    <div class="said" role="status" aria-live="polite">${said.value && html`<p>${said.value}</p>`}</div>
    ${searching.value && html`<${Search} />`}`;
}

const Mark = () => html`
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M9 25V14a7 7 0 0 1 14 0v11M6 25h20" /><circle cx="16" cy="18" r="2" /></svg>`;

/** @param {{at: string}} props */
function Side({ at }) {
  return html`
    <div class="side">
      <div class="bar">
        <a class="brand" href=${link([first()])}><${Mark} />Limen</a>
        <button type="button" class="search-open" aria-label="Search" aria-keyshortcuts="/" onClick=${() => { searching.value = true; }}><span>Search</span><kbd>/</kbd></button>
        <button type="button" class="menu-open" aria-expanded=${menu.value} aria-controls="menu" onClick=${() => { menu.value = !menu.value; }}>Menu</button>
      </div>
      <nav id="menu" class=${menu.value ? 'open' : ''} aria-label="Pages">
        <ul>${offered().filter(([, p]) => !p.apart).map(([name, p]) => html`<li><a href=${link([name])} aria-current=${at === name ? 'page' : undefined} onClick=${() => { menu.value = false; }}>${p.title}</a></li>`)}</ul>
        <div class="who">
          <${Theme} />
          <p><a href="#/account" aria-current=${at === 'account' ? 'page' : undefined} onClick=${() => { menu.value = false; }}>${user.value?.name}<span class="role">${user.value?.role}</span></a></p>
          <button type="button" class="small" onClick=${leave}>Log out</button>
        </div>
      </nav>
    </div>`;
}

async function leave() {
  try {
    await call({ method: 'DELETE', path: '/session' });
  } finally {
    location.reload(); // nothing of what was shown stays in memory
  }
}

function Theme() {
  const [chosen, set] = useState(document.documentElement.dataset.theme ?? 'auto');
  const choose = (/** @type {any} */ e) => {
    const theme = e.currentTarget.value;
    set(theme);
    if (theme === 'auto') {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem('limen-theme');
      return;
    }
    document.documentElement.dataset.theme = theme;
    localStorage.setItem('limen-theme', theme);
  };
  return html`
    <fieldset class="theme"><legend class="away">Colours</legend>
      ${['auto', 'light', 'dark'].map((t) => html`<label><input type="radio" name="theme" value=${t} checked=${chosen === t} onChange=${choose} /><span>${t}</span></label>`)}
    </fieldset>`;
}

/** @typedef {{kind: string, text: string, more?: string, path: string[]}} Hit */

function Search() {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [things, setThings] = useState(/** @type {Hit[]} */ (offered().map(([name, p]) => ({ kind: 'Page', text: p.title, path: [name] }))));
  const close = () => { searching.value = false; };
  useModal(ref);
  useEffect(() => {
    const leave = new AbortController();
    const add = (/** @type {string} */ path, /** @type {(d: any) => Hit[]} */ hits) => get(path, leave.signal).then((d) => setThings((old) => [...old, ...hits(d)]), () => {});
    add('/keys', (d) => d.keys.map((/** @type {any} */ k) => ({ kind: 'Key', text: k.name, more: k.prefix + k.id, path: ['keys', k.id] })));
    add('/teams', (d) => d.teams.map((/** @type {any} */ t) => ({ kind: 'Team', text: t.name, path: ['teams', t.id] })));
    if (may({ roles: readers })) add('/models', (d) => d.models.map((/** @type {any} */ m) => ({ kind: 'Model', text: m.id, path: ['models', m.id] })));
    if (may({ roles: readers })) add('/providers', (d) => d.providers.map((/** @type {any} */ p) => ({ kind: 'Provider', text: p.name, more: p.base_url, path: ['providers'] })));
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

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
