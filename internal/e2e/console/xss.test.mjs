// What clients, upstreams and operators write is shown as it is, and never run: on every page, by
// every way in.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';
import { open, pagesOf } from './pages.mjs';
import { classes, payloads } from './payloads.mjs';
import { openVendor } from './vendor.mjs';

/** One of each class, for what takes its time. */
const some = Object.values(classes).map((all) => all[0]);
const short = (text) => Buffer.from(text).subarray(0, 200).toString().replace(/\ufffd+$/, '');

let vendor, house, key;
before(async () => {
  vendor = await openVendor({
    models: ['plain', ...payloads],
    answer: ({ messages }) => {
      const said = messages.at(-1).content;
      return said.startsWith('fail ') ? { status: 400, error: said.slice(5) } : { text: said, thought: said, service: said.slice(0, 40) };
    },
  });
  house = await openHouse(`usage: {tags: {metadata: [topic], headers: {x-project: project}}}\nproviders:\n  up: {base_url: "${vendor.url}", api_key: x}\n`);
  const keys = (await inTurns(payloads, (text) => make('/keys', { name: short(text), owner: short(text) }))).filter(Boolean);
  key = (await make('/keys', { name: 'plain' })).key;
  await inTurns(payloads, (text) => make('/teams', { name: short(text) }));
  await inTurns(payloads, (text) => make('/tokens', { name: short(text), scopes: ['read'] }));
  await inTurns(some.slice(0, 12), (text) => make('/users', { name: short(text), role: 'viewer' }));
  await inTurns(payloads, (text, i) => call(keys[i % keys.length].key, text, 'up/' + text));
  await inTurns(payloads, (text, i) => call(keys[i % keys.length].key, 'fail ' + text, 'up/plain'));
  await inTurns(some, (text) => call('limen_' + text, text, text)); // refused, and named there
  await inTurns(some, (text) => fetch(house.origin + '/v1/' + encodeURIComponent(text), { headers: { 'User-Agent': header(text), Authorization: 'Bearer ' + key } }));
  await inTurns(some, (text) => fetch(house.origin + '/api/v1/keys/' + encodeURIComponent(text) + '/revoke', { method: 'POST', headers: { Authorization: 'Bearer ' + house.password } })); // into the audit log
  await inTurns(some.slice(0, 8), (text) => fetch(house.origin + '/api/v1/session', { // its list has the browsers
    method: 'POST', headers: { 'Content-Type': 'application/json', 'User-Agent': header(text) }, body: JSON.stringify({ user: 'admin', password: house.password }),
  }));
});
after(async () => {
  await house?.close();
  vendor?.close();
});

/** inTurns does something with all of a list, eight at a time. */
async function inTurns(list, what) {
  const made = [];
  for (let i = 0; i < list.length; i += 8) made.push(...await Promise.all(list.slice(i, i + 8).map((one, j) => what(one, i + j))));
  return made;
}

// make asks for something of that name; what the API refuses is in no page.
async function make(at, body) {
  const answer = await fetch(house.origin + '/api/v1' + at, { method: 'POST', headers: { Authorization: 'Bearer ' + house.password, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok([200, 400].includes(answer.status), `${at}: ${answer.status}`);
  return answer.ok ? answer.json() : null;
}

const get = (at) => fetch(house.origin + '/api/v1' + at, { headers: { Authorization: 'Bearer ' + house.password } });

/** header is what of a text fits into a header. */
const header = (text) => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 1000);

const call = (as, content, model) => fetch(house.base + '/chat/completions', {
  method: 'POST',
  headers: {
    Authorization: 'Bearer ' + header(as), 'Content-Type': 'application/json', 'User-Agent': header(content), 'X-Project': header(content), Referer: header(content),
    'X-Request-Id': header(content), 'X-Forwarded-For': header(content), 'X-Stainless-Lang': header(content),
  },
  body: JSON.stringify({ model, messages: [{ role: 'user', content }], metadata: { topic: content.slice(0, 500) } }),
}).then((answer) => answer.arrayBuffer());

// strange is what of a page no file of the console could have made.
function strange() {
  const all = [];
  const tell = (what, node) => all.push(`${what}: ${node.outerHTML.slice(0, 200)}`);
  for (const node of document.querySelectorAll('*')) {
    if (node.matches('iframe, object, embed, base, math, marquee, video, audio, template, style, frame, applet, use, animate, set, foreignObject, meta[http-equiv], [x-pwn], [srcdoc], [popover], [background]')) tell('an element', node);
    for (const { name, value } of node.attributes) {
      if (name.startsWith('on')) tell('a handler', node);
      if (['href', 'src', 'action', 'formaction', 'xlink:href', 'data'].includes(name) && !/^(#\/|#main$|\/api\/v1\/|\/console\/|[0-9a-f]{16}\/)/.test(value)) tell('an address', node);
    }
  }
  if (window.canary !== undefined || 'canary' in {}) all.push('the canary is dead');
  for (const name in {}) all.push(`every object has a ${name}`);
  if (/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(document.body.textContent + document.title)) all.push('a character that changes how others are shown');
  return all;
}

test('no page runs, fetches or becomes what it shows', async () => {
  const { page, faults, leave } = await house.visit();
  await logIn(page, house.password);
  const found = [];
  const look = async (at) => {
    const before = faults.length;
    await open(page, at);
    found.push(...[...await page.evaluate(strange), ...faults.slice(before)].map((text) => `${at.slice(0, 100)}: ${text}`));
    if (faults.length > before) await page.reload(); // what was thrown may have left half a page
  };
  for (const at of await pagesOf(page)) await look(at);
  const named = await inTurns(some, async (text, i) => {
    const of = await Promise.all(['keys', 'teams'].map(async (kind) => (await get(`/${kind}/${encodeURIComponent(short(text))}`)).ok && `${kind}/${encodeURIComponent(short(text))}`));
    const asked = i % 3 ? [] : [`calls?model=${encodeURIComponent('up/' + text)}`, `usage?tag=${encodeURIComponent('topic=' + text)}&range=today&by=tag`];
    return [...of, `models/${encodeURIComponent('up/' + text)}`, ...asked];
  });
  for (const at of named.flat().filter(Boolean)) await look(at);
  assert.deepEqual(found, []);
  assert.deepEqual(faults, []);

  // They are there, whole.
  await open(page, 'keys');
  const keys = (await house.admin('GET', '/keys')).keys.map((k) => k.name);
  assert.ok(keys.length > 60, `${keys.length} keys`);
  const shown = await page.locator('main table').evaluate((table) => [...table.querySelectorAll('td a')].map((a) => a.textContent));
  for (const name of keys) if (!/[\u202a-\u202e\u2066-\u2069]/.test(name)) assert.ok(shown.includes(name), `${name} is not shown as it is`);
  assert.ok(shown.includes('alice⟨U+202E⟩txt.exe'), 'what turns the writing round is not told');

  await page.keyboard.press('/');
  for (const text of ['<', 'constructor', '__proto__']) {
    await page.getByRole('dialog').getByRole('combobox').fill(text);
    await page.getByRole('option').first().waitFor();
    assert.deepEqual(await page.evaluate(strange), []);
  }
  await leave();
});

test('no address of a page is taken for more than a name', async () => {
  const { page, faults, leave } = await house.visit();
  await logIn(page, house.password);
  const all = await page.locator('nav a[href^="#/"]').evaluateAll((links) => links.map((a) => a.getAttribute('href').slice(2)));
  const said = (names, text) => names.map((name) => `${name}=${text}`).join('&');
  const filters = ['q', 'key', 'team', 'model', 'provider', 'tag', 'since', 'until', 'status', 'failed', 'cost_min', 'before', 'name', 'user'];
  const choices = ['show', 'by', 'range', 'client', 'beside', 'live', 'tab', 'version'];
  const [first, ...others] = [...classes.prototypes.slice(0, 3), classes.handlers[0], classes.links[0]].map(encodeURIComponent);
  const addresses = [
    ...all.flatMap((at) => [`${at}/${first}`, `${at}?${said(filters, first)}`, `${at}?${said(choices, first)}`]),
    ...[first, ...others, '%', 'a%2Fb'].flatMap((text) => [text, `keys/new?name=${text}`]),
  ];
  const found = [];
  for (const at of addresses) {
    const before = faults.length;
    await page.evaluate((to) => new Promise((resolve) => { location.hash = to; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))); }), '#/' + at);
    await page.waitForFunction(() => document.querySelector('main')?.children.length && !document.querySelector('.loading'), undefined, { timeout: 5000 }).catch(() => found.push(`${at}: shows nothing`));
    found.push(...[...await page.evaluate(strange), ...faults.slice(before)].map((text) => `${at}: ${text}`));
    if (faults.length > before) await page.reload();
  }
  assert.deepEqual(found, []);
  await leave();
});

test('answers and errors of models are texts', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await open(page, 'playground?model=' + encodeURIComponent('up/plain'));
  await page.getByLabel('Key', { exact: true }).fill(key);
  for (const text of [payloads.join('\n'), classes.templates[1], 'fail ' + classes.handlers[0], 'fail ' + classes.prototypes[0]]) {
    const links = await page.getByRole('link', { name: 'the call' }).count();
    await page.getByLabel('Prompt', { exact: true }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('link', { name: 'the call' }).nth(links).waitFor();
    assert.deepEqual(await page.evaluate(strange), []);
  }
  assert.ok((await page.locator('.turn .text').allInnerTexts()).some((text) => text.includes(classes.tags[0]) && text.includes(classes.templates[1])), 'the answer is not shown');
  await leave();
});
