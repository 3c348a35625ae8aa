// A gateway that was just started for the first time, with the echo provider alone, and a browser
// before it. LIMEN_BIN names the binary, FAKEUPSTREAM_BIN that of a vendor, CHROMIUM_BIN the browser.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const binary = path.resolve(process.env.LIMEN_BIN ?? 'limen');
const patience = 60_000;

// openUpstream starts a vendor that takes one key.
export async function openUpstream(key) {
  const vendor = spawn(path.resolve(process.env.FAKEUPSTREAM_BIN ?? 'fakeupstream'), ['-key', key], { stdio: ['ignore', 'pipe', 'inherit'] });
  process.once('exit', () => vendor.kill('SIGKILL'));
  const [line] = await once(vendor.stdout, 'data');
  return { url: String(line).trim().replace('listening ', ''), close: () => vendor.kill('SIGTERM') };
}

// openHouse starts one, with more in its configuration; with null there is no file of it.
export async function openHouse(more = '') {
  const dir = await mkdtemp(path.join(tmpdir(), 'limen-console-'));
  const file = path.join(dir, 'limen.yaml');
  const text = `listen: 127.0.0.1:0\ndata: ${path.join(dir, 'data')}\n${more}`;
  if (more !== null) await writeFile(file, text);
  const args = more === null ? ['--listen', '127.0.0.1:0', '--data', path.join(dir, 'data')] : ['--config', file];
  const gateway = spawn(binary, ['serve', ...args], { cwd: dir, env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => gateway.once('exit', resolve));
  process.once('exit', () => gateway.kill('SIGKILL'));
  const welcome = await said(gateway);
  const word = (name) => new RegExp(`^  ${name} +(\\S+)$`, 'm').exec(welcome)[1];
  const base = word('Base URL');
  const house = { base, origin: new URL(base).origin, file, text, key: word('API key'), password: word('Admin password'), link: /^ +(\S+#\/login\?link=\S+)$/m.exec(welcome)[1] };
  let browser;
  return {
    ...house,
    admin: async (method, at, body) => {
      const answer = await fetch(house.origin + '/api/v1' + at, { method, headers: { Authorization: 'Bearer ' + house.password, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
      assert.ok(answer.ok, `${method} ${at}: ${answer.status}`);
      return answer.json();
    },
    say: (key, content, model = 'echo') => fetch(base + '/chat/completions', {
      method: 'POST', headers: { Authorization: 'Bearer ' + key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    }),
    // visit opens the console in a browser of its own. Whatever a script of a page throws, every
    // dialog and every request to another host is a fault.
    visit: async (options = {}) => {
      browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
      const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
      context.setDefaultTimeout(patience);
      const page = await context.newPage();
      const faults = [];
      page.on('pageerror', (err) => faults.push(`thrown: ${err.message}`));
      page.on('dialog', (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
      page.on('console', (m) => { if (/Content Security Policy/.test(m.text())) faults.push(m.text()); });
      page.on('request', (r) => { if (!r.url().startsWith(house.origin) && !r.url().startsWith('data:')) faults.push(`request: ${r.url()}`); });
      await page.goto(house.origin + '/console/');
      return { page, faults, leave: async () => { await context.close(); assert.deepEqual(faults, []); } };
    },
    close: async () => {
      await browser?.close();
      gateway.kill('SIGTERM');
      await ended;
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

// said waits for the welcome, which a first start prints whole.
function said(gateway) {
  return new Promise((resolve, reject) => {
    let text = '', log = '';
    const timer = setTimeout(() => reject(new Error(`the gateway did not start:\n${text}${log}`)), patience);
    gateway.stderr.on('data', (b) => { log = (log + b).slice(-1 << 16); });
    gateway.stdout.on('data', (b) => {
      text += b;
      if (!/^ {2}provider /m.test(text)) return;
      clearTimeout(timer);
      resolve(text);
    });
    gateway.once('exit', (code) => { clearTimeout(timer); reject(new Error(`the gateway ended with ${code}:\n${text}${log}`)); });
  });
}

export async function logIn(page, password) {
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
}
