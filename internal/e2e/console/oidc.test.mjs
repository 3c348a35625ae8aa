// Single sign-on in a browser, at a provider that runs beside the gateway. OIDC_BIN names it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';

const skip = !process.env.OIDC_BIN && 'OIDC_BIN names no provider';
let house, provider, issuer;

before(async () => {
  if (skip) return;
  provider = spawn(process.env.OIDC_BIN, { stdio: ['pipe', 'pipe', 'inherit'] });
  process.once('exit', () => provider.kill('SIGKILL'));
  const lines = createInterface(provider.stdout);
  [issuer] = await once(lines, 'line');
  house = await openHouse(`login: { oidc: { name: Example, issuer: "${issuer}", client_id: limen, client_secret: canary-of-the-client-7Qb2, groups: { ops: admin } } }\n`);
  provider.stdin.write(`${house.origin}/api/v1/login/oidc/callback\n`);
  await once(lines, 'line');
});
after(async () => {
  provider?.stdin.end();
  await house?.close();
});

// visit opens the console in a browser that may go to the provider, too.
async function visit(options) {
  const seen = await house.visit(options);
  return { ...seen, leave: async () => {
    seen.faults.splice(0, seen.faults.length, ...seen.faults.filter((f) => !f.startsWith(`request: ${issuer}/`)));
    await seen.leave();
  } };
}

test('a click on the button leads to the provider, and back into the console', { skip }, async () => {
  const { page, leave } = await visit();
  await page.getByRole('link', { name: 'Sign in with Example' }).click();
  await page.getByRole('button', { name: 'ann' }).click();
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  assert.equal(page.url(), `${house.origin}/console/`);
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts can read the cookie');
  await page.getByText('ann@example.com').waitFor();
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('link', { name: 'Sign in with Example' }).waitFor();
  await leave();
});

test('who is not let in is told why, and a password still works', { skip }, async () => {
  const { page, leave } = await visit({ viewport: { width: 360, height: 740 } });
  await page.getByRole('link', { name: 'Sign in with Example' }).click();
  await page.getByRole('button', { name: 'bob' }).click();
  await page.getByText('You are known, but nothing lets you in here').waitFor();
  assert.equal(page.url(), `${house.origin}/console/`, 'the code stays in the address');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than a phone');
  await page.getByRole('link', { name: 'Sign in with Example' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Example did not say who you are').waitFor();
  await logIn(page, house.password);
  await leave();
});
