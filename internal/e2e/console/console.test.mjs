// The console in a browser: what people do with it, and what must not happen to them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';

let house;
before(async () => { house = await openHouse(); });
after(() => house?.close());

test('a browser at the address is sent to the console, and logs in and out', async () => {
  const { page, leave } = await house.visit();
  await page.goto(house.origin + '/');
  await page.getByRole('heading', { name: 'Limen' }).waitFor();
  assert.match(page.url(), /\/console\/$/);
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').waitFor();
  await logIn(page, house.password);
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts can read the cookie');
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Password').waitFor();
  await leave();
});

test('a key is made, shown once, and a client that uses it is seen to arrive', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(house.origin + '/console/#/keys/new');
  await page.getByLabel('Name', { exact: true }).fill('alice');
  await page.getByText('Budgets and limits').click();
  await page.getByLabel('Budgets', { exact: true }).fill('5/month, 1/day');
  await page.getByLabel('Requests a minute').fill('60');
  await page.getByText('as curl').last().click();
  assert.match(await page.getByLabel('as curl').last().innerText(), /"budgets":\["5\/month","1\/day"\],"limits":\{"rpm":60\}/);
  await page.getByRole('button', { name: 'Make the key' }).click();
  const key = (await page.getByLabel('The new key').innerText()).trim();
  assert.match(key, /^limen_/);
  const made = await house.admin('GET', '/keys/alice');
  assert.deepEqual(made.limits, { rpm: 60 });
  assert.deepEqual(made.budgets.map((b) => `${b.amount}/${b.period}`), ['5/month', '1/day']);

  await page.getByRole('link', { name: 'Connect a client with it' }).click();
  await page.getByRole('button', { name: 'Codex' }).click();
  const codex = await page.getByLabel('Settings of Codex').innerText();
  assert.ok(codex.includes(`base_url = "${house.base}"`), codex);
  assert.ok(codex.includes('model = "echo"'), codex);
  assert.ok((await page.getByLabel("The key's variable").innerText()).includes(key));
  await page.getByText('This turns green as soon as it arrives.').waitFor();
  assert.equal((await house.say(house.key, 'somebody else')).status, 200);
  assert.equal((await house.say(key, 'Hello')).status, 200);
  await page.getByText('It works').waitFor();
  await page.getByRole('link', { name: 'Look at it' }).click();
  await page.getByRole('heading', { name: 'The way it went' }).waitFor();
  await page.getByText('alice').first().waitFor();

  await page.goto(house.origin + '/console/#/keys/alice');
  await page.getByRole('button', { name: 'Change' }).waitFor();
  assert.equal(await page.getByText(key).count(), 0, 'the key is shown again');
  await page.getByRole('button', { name: 'Rotate' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
  assert.notEqual((await page.getByLabel('The new key').innerText()).trim(), key);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Restore' }).waitFor();
  assert.equal((await house.say(key, 'Hello')).status, 401);
  await leave();
});

test('all of it can be done with the keyboard alone', async () => {
  const { page, leave } = await house.visit();
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.getAttribute('aria-label') || document.activeElement.name);
  // tab goes on until what is wanted has the focus, which must be visible there.
  const tab = async (wanted) => {
    for (let i = 0; i < 60; i++) {
      if ((await focused())?.startsWith(wanted)) {
        assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none', `${wanted} has no visible focus`);
        return;
      }
      await page.keyboard.press('Tab');
    }
    assert.fail(`${wanted} cannot be reached`);
  };
  await page.getByLabel('Password').waitFor();
  assert.equal(await focused(), 'password');
  await page.keyboard.type(house.password);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  await page.keyboard.press('/');
  await page.getByRole('combobox').waitFor();
  await page.keyboard.type('keys');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
  await tab('New key');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name', { exact: true }).waitFor();
  await page.waitForFunction(() => document.activeElement.name === 'name');
  await page.keyboard.type('by hand');
  await page.keyboard.press('Enter');
  await page.getByLabel('The new key').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await tab('by hand');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'by hand' }).waitFor();
  await leave();
});

const pages = ['home', 'connect', 'keys', 'keys/new', 'keys/first', 'teams', 'teams/new', 'calls', 'usage?range=today', 'models', 'models/echo', 'providers', 'playground'];

test('every page fits a phone, in light and in dark', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const { page, leave } = await house.visit({ viewport: { width: 360, height: 740 }, colorScheme });
    await logIn(page, house.password);
    for (const at of pages) {
      await page.goto(`${house.origin}/console/#/${at}`);
      await page.locator('main h1').waitFor();
      await page.waitForFunction(() => !document.querySelector('.loading'));
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360), `${at} scrolls sideways`);
      assert.deepEqual(await page.evaluate(faintTexts), [], `${at} in ${colorScheme}`);
    }
    await leave();
  }
});

// faintTexts are the texts of a page whose contrast with their ground is under 4.5.
function faintTexts() {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.checkVisibility() || node.closest('.away, .tick, :disabled, svg, option')) continue;
    const [a, b] = [light(rgba(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${walk.currentNode.data.trim()}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return faint;
}

const payloads = [
  '<img src=x onerror=alert(1)>', '<script>alert(1)</script>', '"><svg/onload=alert(1)>', "';alert(1)//", '<iframe srcdoc="<script>alert(1)</script>">', 'javascript:alert(1)',
  '</title><script>alert(1)</script>', '<a href="javascript:alert(1)" autofocus onfocus=alert(1)>x</a>', '${alert(1)}', '{{constructor.constructor("alert(1)")()}}',
  '<style>@import "//evil.example"</style>', '![x](https://evil.example/x.png)', '<math><mtext><script>alert(1)</script>', '<details open ontoggle=alert(1)>', '%3Cscript%3Ealert(1)%3C/script%3E', '<base href="//evil.example/">',
];

test('nothing that clients or operators write is run or fetched', async () => {
  const keys = [];
  for (const text of payloads) {
    const key = await house.admin('POST', '/keys', { name: text, owner: text });
    keys.push(key);
    await house.admin('POST', '/teams', { name: text.replaceAll('/', '∕') });
    await house.say(key.key, text);
    await house.say(key.key, 'x', text);
  }
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  for (const at of [...pages, ...payloads.slice(0, 6).flatMap((text) => [encodeURIComponent(text), 'models/' + encodeURIComponent(text), 'calls?model=' + encodeURIComponent(text), 'keys/new?name=' + encodeURIComponent(text)])]) {
    await page.goto(`${house.origin}/console/#/${at}`);
    await page.waitForFunction(() => !document.querySelector('.loading'));
  }
  for (const key of keys.slice(0, 6)) {
    await page.goto(`${house.origin}/console/#/keys/${key.id}`);
    await page.getByRole('heading', { level: 1, name: key.name }).waitFor();
    const { calls } = await house.admin('GET', `/calls?key=${key.id}`);
    for (const call of calls) {
      await page.goto(`${house.origin}/console/#/calls/${call.request_id}`);
      await page.getByText(call.request_id, { exact: true }).waitFor();
    }
  }
  await page.goto(`${house.origin}/console/#/calls`);
  await page.locator('table').getByText('<img src=x onerror=alert(1)>').first().waitFor();
  await page.goto(`${house.origin}/console/#/playground`);
  await page.getByLabel('Key', { exact: true }).fill(house.key);
  await page.getByLabel('Prompt', { exact: true }).fill(payloads.join('\n'));
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('link', { name: 'the call' }).waitFor();
  assert.ok((await page.locator('.turn .text').last().innerText()).includes(payloads[0]));
  for (const tag of ['img[src=x]', 'iframe', 'math', 'base', 'main style', 'main script']) assert.equal(await page.locator(tag).count(), 0, tag);
  await leave();
});
