// The shell: who is there, where they are, and the way elsewhere.
import { call, user } from './api.js';
import { html, render, signal, useEffect, useRef, useState } from './html.js';
import { link, route } from './route.js';
import { Problem, said, say } from './ui.js';

/** All but members, who see what is their team's. */
const readers = ['owner', 'admin', 'viewer'];

/**
 * The pages, by the first part of their address. A page is fetched when it is opened first. One with
 * roles is for those only; one that is apart is not in the list of pages.
 * @type {Record<string, {title: string, load: () => Promise<any>, roles?: string[], apart?: boolean}>}
 */
const pages = {
  home: { title: 'Home', load: () => import('./pages/home.js') },
  connect: { title: 'Connect', load: () => import('./pages/connect.js'), roles: readers },
  keys: { title: 'Keys', load: () => import('./pages/keys.js') },
  teams: { title: 'Teams', load: () => import('./pages/teams.js') },
  calls: { title: 'Calls', load: () => import('./pages/calls.js') },
  usage: { title: 'Usage', load: () => import('./pages/usage.js') },
  models: { title: 'Models', load: () => import('./pages/models.js'), roles: readers },
  providers: { title: 'Providers', load: () => import('./pages/providers.js'), roles: readers },
  config: { title: 'Configuration', load: () => import('./pages/config.js'), roles: readers },
  playground: { title: 'Playground', load: () => import('./pages/playground.js') },
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
/** What searches, while somebody does. */
const searching = signal(/** @type {typeof import('./search.js').Search|null} */ (null));
const menu = signal(false);

/** search opens what is fetched when somebody searches first. */
async function search() {
  try {
    searching.value = (await import('./search.js')).Search;
  } catch {
    say('The search could not be fetched. Limen may have been updated: load the page again.');
  }
}

const App = () => (user.value ? html`<${Shell} />` : html`<${Entry} />`);

const outdated = 'This page could not be fetched. Limen may have been updated.';

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

/** Entry is the way in, which is fetched when somebody has to take it. */
function Entry() {
  const [Login, found] = useState(/** @type {typeof import('./pages/login.js').Login|null} */ (null));
  const [failed, setFailed] = useState(false);
  useEffect(() => { import('./pages/login.js').then((m) => found(() => m.Login), () => setFailed(true)); }, []);
  if (failed) return html`<${Problem} error=${new Error(outdated)} retry=${() => location.reload()} />`;
  return Login ? html`<${Login} problem=${problem.value} />` : html`<div class="loading" role="status"><span class="away">Loading</span></div>`;
}

function Shell() {
  const name = route.value.path[0] ?? first();
  const page = pageOf(name);
  const [, shown] = useState('');
  const [failed, setFailed] = useState(/** @type {Error|null} */ (null));
  useEffect(() => {
    menu.value = false;
    setFailed(null);
    if (!page || !may(page) || loaded[name]) return;
    page.load().then((m) => { loaded[name] = m.default; shown(name); }, () => setFailed(new Error(outdated)));
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
      search();
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
    ${searching.value && html`<${searching.value} pages=${offered()} reads=${may({ roles: readers })} close=${() => { searching.value = null; }} />`}`;
}

/** @param {{at: string}} props */
function Side({ at }) {
  return html`
    <div class="side">
      <div class="bar">
        <a class="brand" href=${link([first()])}>Limen</a>
        <button type="button" class="search-open" aria-label="Search" aria-keyshortcuts="/" onClick=${() => { search(); }}><span>Search</span><kbd>/</kbd></button>
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

// What the back button restores may be somebody else's by now.
addEventListener('pageshow', (e) => { if (e.persisted) location.reload(); });

await begin();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app'))); // in place of what the document shows until now
