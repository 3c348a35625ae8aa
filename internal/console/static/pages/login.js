// The way in.
import { APIError, call, get, user } from '../api.js';
import { html, useEffect } from '../html.js';
import { sheet } from '../sheet.js';
import { Field, Form, Problem, useGet } from '../ui.js';

await sheet('login.css');

// What became of a login at a provider: the gateway says a code, and this page what it means.
const code = new URLSearchParams(location.search).get('login');
if (code) history.replaceState(null, '', location.pathname + location.hash);

/** @type {Record<string, (name: string) => string>} */
const problems = {
  away: (name) => `${name} does not answer. Try again in a while, or log in with a password.`,
  denied: (name) => `${name} did not say who you are: the login was cancelled there, or is not allowed to you.`,
  failed: (name) => `${name} answered something that cannot be relied on, so nobody was logged in. Try again; the gateway's log says what it was.`,
  expired: () => 'This login was not begun in this browser, took longer than ten minutes, or was over already. Try again, and open the console by the address that its operators gave you.',
  unknown: () => 'You are known, but nothing lets you in here: you are in no group that may, and no user was made for you. Ask who runs this gateway.',
  unverified: (name) => `${name} has not verified your e-mail address, and this gateway lets in only people whose address is. Verify it there first.`,
  domain: () => 'This gateway lets in people of other e-mail domains only. Did you log in with the right account?',
  taken: () => 'There is another user of your name here already. Ask an owner of this gateway to rename or delete it.',
  address: () => 'You could not come back here from the provider: the gateway does not know its own address. Its configuration needs public_url.',
  unavailable: () => 'The gateway cannot log you in just now. Try again; its log says why.',
};

/** @param {string} name of the provider */
function problemOf(name) {
  if (!code) return null;
  return new Error((Object.hasOwn(problems, code) ? problems[code] : problems.unavailable)(name));
}

/** @param {{problem: Error|null}} props */
export function Login({ problem }) {
  useEffect(() => { document.title = 'Log in · Limen'; }, []);
  const { data, error } = useGet('/login');
  /** @type {import('../../types').WaysIn|undefined} */
  const ways = error ? { password: true } : data;
  const name = ways?.oidc?.name ?? 'Your provider';
  const wrong = problem ?? problemOf(name);
  return html`
    <main class="login">
      <div class="card">
        <img src=${new URL('../icon.svg', import.meta.url).pathname} alt="" width="44" height="44" />
        <h1>Limen</h1>
        <p class="lead">Log in to your gateway.</p>
        ${ways && wrong && html`<${Problem} error=${wrong} />`}
        ${ways?.oidc && html`<a class="button primary" href="/api/v1/login/oidc">Sign in with ${name}</a>`}
        ${ways?.oidc && (ways.password
          ? html`<p class="or"><span>or</span></p><${Password} />`
          : html`<details><summary>Log in as admin</summary><${Password} /></details>`)}
        ${ways && !ways.oidc && html`<${Password} alone />`}
        <details><summary>Where is the password?</summary>
          <p>It was shown once, at the very first start, beside <q>Admin password</q>. On the gateway's machine a new one is set with <code>limen admin password</code>.</p>
        </details>
      </div>
    </main>`;
}

/** Password is the way in with one. @param {{alone?: boolean}} props */
function Password({ alone = false }) {
  const send = async (/** @type {Record<string, string>} */ values) => {
    const { user: found } = await call({ method: 'POST', path: '/session', body: { user: values.user || 'admin', password: values.password } });
    try {
      await get('/session');
    } catch (err) {
      if (/** @type {APIError} */ (err).status !== 401) throw err;
      throw new APIError(0, 'The password is right, but the browser did not keep the session. It does so over HTTPS, and on http://127.0.0.1 or http://localhost.');
    }
    user.value = found;
  };
  return html`
    <${Form} send=${send} label="Log in" tone=${alone ? 'primary' : ''}>
      <${Field} label="User" name="user" autocomplete="username" value="admin" required />
      <${Field} label="Password" name="password" type="password" autocomplete="current-password" required autofocus=${alone} />
    <//>`;
}
