// What keeps others out of the console of somebody who is logged in: pages of other sites, names
// that lead here, whoever comes to the browser after a logout.

import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';
import { furnish, open, pagesOf } from './pages.mjs';

let house, key;
before(async () => {
  house = await openHouse();
  key = await furnish(house);
});
after(() => house?.close());

/** ask sends a request as it is, with any Host. */
const ask = (method, path, headers = {}, body = '') => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(house.origin);
  const out = request({ hostname, port, method, path, headers: { 'Content-Length': Buffer.byteLength(body), ...headers } }, async (answer) => {
    const parts = [];
    for await (const part of answer) parts.push(part);
    resolve({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString() });
  });
  out.on('error', reject);
  out.end(body);
});

/** session logs in past the browser, and is the cookie. */
async function session() {
  const answer = await ask('POST', '/api/v1/session', { 'Content-Type': 'application/json' }, JSON.stringify({ password: house.password }));
  assert.equal(answer.status, 200);
  return answer.headers['set-cookie'][0].split(';')[0];
}

test('every file says what a browser must not do with it', async () => {
  const { page, leave } = await house.visit();
  const paths = new Set(['/console/', '/console/none.js']);
  page.on('response', (answer) => { if (answer.url().includes('/console/')) paths.add(new URL(answer.url()).pathname); });
  await page.reload();
  await logIn(page, house.password);
  await pagesOf(page);
  assert.ok(paths.size > 25, `${paths.size} files`);
  for (const path of paths) {
    const { status, headers } = await ask('GET', path);
    assert.equal(headers['content-security-policy'], "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", path);
    for (const [name, value] of Object.entries({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin', 'access-control-allow-origin': undefined })) {
      assert.equal(headers[name], value, `${path}: ${name}`);
    }
    assert.equal(headers['cache-control'], status === 200 && path !== '/console/' ? 'public, max-age=31536000, immutable' : 'no-cache', path);
  }
  await leave();
});

test('a session is a cookie that no script reads, new with each login, and the browser keeps nothing else', async () => {
  const { page, leave } = await house.visit();
  await page.context().addCookies([{ name: '__Host-limen', value: 'a'.repeat(62), url: house.origin.replace('http:', 'https:'), secure: true, httpOnly: true, sameSite: 'Strict' }]);
  const ids = new Set();
  for (let i = 0; i < 2; i++) {
    await logIn(page, house.password);
    const cookies = await page.context().cookies(house.origin.replace('http:', 'https:'));
    assert.deepEqual(cookies.map(({ name, path, expires, httpOnly, secure, sameSite }) => ({ name, path, expires, httpOnly, secure, sameSite })), [{ name: '__Host-limen', path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Strict' }]);
    ids.add(cookies[0].value);
    if (i === 0) await pagesOf(page);
    await open(page, 'home'); // where the next login leads
    await page.getByRole('radio', { name: 'dark' }).check({ force: true });
    const kept = await page.evaluate(async () => ({ cookie: document.cookie, local: { ...localStorage }, session: { ...sessionStorage }, databases: await indexedDB.databases(), caches: await caches.keys(), workers: (await navigator.serviceWorker.getRegistrations()).length }));
    assert.deepEqual(kept, { cookie: '', local: { 'limen-theme': 'dark' }, session: {}, databases: [], caches: [], workers: 0 });
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Password').waitFor();
    assert.deepEqual(await page.context().cookies(), []);
  }
  assert.equal(ids.size, 2, 'two logins have one session');
  assert.ok(!ids.has('a'.repeat(62)), 'a session was taken that somebody else had chosen');
  await leave();
});

test('after a logout nothing of it is seen again', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await open(page, 'keys');
  await page.getByRole('link', { name: 'alice' }).waitFor();
  await open(page, 'keys/' + key.id);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Password').waitFor();
  for (const go of ['goBack', 'goBack', 'goForward', 'reload']) {
    await page[go]();
    await page.getByLabel('Password').waitFor();
    assert.doesNotMatch(await page.content(), /alice/);
  }
  await leave();

  // It ends in every window, also where it was not asked for.
  const two = await house.visit();
  await logIn(two.page, house.password);
  const other = await two.page.context().newPage();
  await other.goto(house.origin + '/console/#/keys');
  await other.getByRole('link', { name: 'alice' }).waitFor();
  await two.page.getByRole('button', { name: 'Log out' }).click();
  await two.page.getByLabel('Password').waitFor();
  await other.evaluate(() => { location.hash = '#/teams'; });
  await other.getByLabel('Password').waitFor();
  assert.doesNotMatch(await other.content(), /alice|research/);
  await two.leave();
});

test('what is asked with a session is kept by nobody', async () => {
  const Cookie = await session();
  const { text } = await ask('GET', '/api/v1/openapi.json', { Cookie });
  const reads = Object.entries(JSON.parse(text).paths).filter(([, one]) => one.get).map(([path]) => path.replace(/^\/api\/v1|^/, '/api/v1').replaceAll(/\{\w+\}/g, 'alice'));
  assert.ok(reads.length > 15, `${reads.length} reads`);
  const state = async () => Promise.all(['keys', 'teams', 'users', 'tokens', 'audit', 'config', 'prices'].map(async (what) => (await ask('GET', '/api/v1/' + what, { Cookie })).text.replaceAll(/"(last_used|seen|at)":"[^"]*"/g, '')));
  const before = await state();
  for (const path of reads) {
    const { headers } = await ask('GET', path, { Cookie });
    assert.equal(headers['cache-control'], 'no-store', path);
    assert.equal(headers['access-control-allow-origin'], undefined, path);
    assert.equal(headers['x-content-type-options'], 'nosniff', path);
  }
  assert.deepEqual(await state(), before, 'a read changed something');
  await ask('DELETE', '/api/v1/session', { Cookie });
  assert.equal((await ask('GET', '/api/v1/keys', { Cookie })).status, 401);
});

test('a name of somebody else leads to nothing', async () => {
  const Cookie = await session();
  const json = { 'Content-Type': 'application/json' };
  for (const Host of ['evil.example', 'evil.example:' + new URL(house.origin).port, '127.0.0.1.evil.example', 'localhost.evil.example']) {
    for (const [method, path, headers, body] of [
      ['GET', '/console/', {}], ['GET', '/api/v1/keys', { Cookie }], ['GET', '/api/v1/session', {}], ['POST', '/api/v1/session', json, JSON.stringify({ password: house.password })],
      ['POST', '/api/v1/keys', { Cookie, ...json, Origin: 'http://' + Host, 'Sec-Fetch-Site': 'same-origin' }, '{"name":"forged"}'],
    ]) {
      const { status, headers: got } = await ask(method, path, { Host, ...headers }, body);
      assert.equal(status, 421, `${method} ${path} at ${Host}`);
      assert.equal(got['set-cookie'], undefined);
    }
    assert.equal((await ask('GET', '/api/v1/keys', { Host, Authorization: 'Bearer ' + house.password })).status, 200, 'a program with a password of its own');
  }
  for (const Host of ['localhost', 'LOCALHOST:1', '[::1]:80', 'limen.localhost']) assert.equal((await ask('GET', '/api/v1/keys', { Host, Cookie })).status, 200, Host);
});

test('a page of another site can neither frame the console nor use its session', async () => {
  const { page } = await house.visit(); // it is its business to ask elsewhere
  await logIn(page, house.password);
  const names = async () => (await house.admin('GET', '/keys')).keys.map((k) => k.name);
  const before = await names();
  const attack = `<iframe name="framed" src="${house.origin}/console/"></iframe>
    <form id="form" method="post" enctype="text/plain" target="sink" action="${house.origin}/api/v1/keys"><input name='{"name":"forged by a form","owner":"' value='"}'></form><iframe name="sink"></iframe>
    <img src="${house.origin}/api/v1/keys"><script src="${house.origin}/console/theme.js"></script>`;
  const evil = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(attack));
  await new Promise((resolve) => evil.listen(0, '127.0.0.1', resolve));
  try {
    // localhost is another site than 127.0.0.1; another port is the same site, and the browser sends it the cookie.
    for (const host of ['localhost', '127.0.0.1']) {
      await page.goto(`http://${host}:${evil.address().port}/`);
      const read = await page.evaluate(async (origin) => {
        document.getElementById('form').submit();
        const tried = [];
        for (const [method, type] of [['POST', 'text/plain'], ['POST', 'application/json'], ['DELETE', 'application/json'], ['GET', undefined]]) {
          for (const mode of ['cors', 'no-cors']) {
            const path = method === 'DELETE' ? '/api/v1/keys/alice' : '/api/v1/keys';
            await fetch(origin + path, { method, mode, credentials: 'include', headers: type && { 'Content-Type': type }, body: method === 'POST' ? '{"name":"forged by a script"}' : undefined })
              .then(async (answer) => tried.push(await answer.text()), () => {});
          }
        }
        return tried.join('');
      }, house.origin);
      assert.equal(read, '', `${host} reads what it asked for`);
      const framed = page.frames().find((f) => f.name() === 'framed');
      assert.equal(await framed.locator('#app').count().catch(() => 0), 0, `${host} frames the console`);
      assert.deepEqual(await names(), before);
    }
  } finally {
    evil.closeAllConnections();
    evil.close();
    await page.context().close();
  }
});
