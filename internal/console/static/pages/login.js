// The way in.
import { APIError, call, get, user } from '../api.js';
import { html, useEffect } from '../html.js';
import { Field, Form, Problem } from '../ui.js';

/** @param {{problem: Error|null}} props */
export function Login({ problem }) {
  useEffect(() => { document.title = 'Log in · Limen'; }, []);
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
    <main class="login">
      <div class="card">
        <img src=${new URL('../icon.svg', import.meta.url).pathname} alt="" width="44" height="44" />
        <h1>Limen</h1>
        <p class="lead">Log in to your gateway.</p>
        ${problem && html`<${Problem} error=${problem} />`}
        <${Form} send=${send} label="Log in">
          <${Field} label="User" name="user" autocomplete="username" value="admin" required />
          <${Field} label="Password" name="password" type="password" autocomplete="current-password" required autofocus />
        <//>
        <details><summary>Where is the password?</summary>
          <p>It was shown once, at the very first start, beside <q>Admin password</q>. On the gateway's machine a new one is set with <code>limen admin password</code>.</p>
        </details>
      </div>
    </main>`;
}
