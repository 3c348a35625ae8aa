// The pages that people look at daily: what they show is what came.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import readline from 'node:readline';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';

let upstream, house;
before(async () => {
  upstream = await openUpstream();
  house = await openHouse(`providers:
  up: {base_url: ${upstream.url}, api_key: k, speaks: [openai-chat]}
  down: {base_url: "http://127.0.0.1:9/v1", api_key: k, speaks: [openai-chat]}
models:
  dear: {targets: [up/big], price: {input: 3, output: 15, cache_read: 0.3}}
  cheap: {targets: [up/small], price: {input: 0.2, output: 0.8}}
  second: {targets: ["up/small!status-500", up/big], price: {input: 3, output: 15}}
usage:
  tags: {metadata: [project]}
`);
});
after(async () => { await house?.close(); await upstream?.close(); });

// openUpstream starts a vendor that keeps what it is sent. FAKEUPSTREAM_BIN names it.
async function openUpstream() {
  const child = spawn(path.resolve(process.env.FAKEUPSTREAM_BIN ?? 'fakeupstream'), [], { stdio: ['ignore', 'pipe', 'inherit'] });
  process.once('exit', () => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const [line] = await readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]().next().then((r) => [r.value]);
  const url = line.split(' ')[1];
  return {
    url,
    requests: async () => (await fetch(new URL('/_control/requests', url))).json(),
    close: () => { child.kill('SIGTERM'); return ended; },
  };
}

const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

test('home: the check-list turns green by itself, and what is wrong is said', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  const first = page.getByRole('listitem').filter({ hasText: 'The first call is seen' });
  await first.getByText('not yet').waitFor();
  await page.getByRole('listitem').filter({ hasText: 'A provider answers' }).getByText('done').waitFor();
  await page.getByRole('region', { name: 'Warnings' }).getByText('down does not answer').waitFor();

  const poor = await house.admin('POST', '/keys', { name: 'poor', budgets: ['0.00000001/day soft'] });
  await house.say(poor.key, 'Hello', 'dear');
  await page.getByText('Everything is set up').waitFor();
  await page.getByText(/poor has spent \d+ % of its budget/).waitFor();
  await house.say(house.key, 'Hello', 'up/tools');
  await page.getByText('up/tools has no known price').waitFor();
  const today = await house.admin('GET', '/usage?by=model');
  const stats = page.getByLabel('Today', { exact: true });
  await stats.getByText(`${today.total_tokens - today.output_tokens - today.reasoning_tokens} in, ${today.output_tokens + today.reasoning_tokens} out`).waitFor();
  assert.match(await stats.innerText(), new RegExp(`Calls today\\s+${today.calls}\\s`));
  await page.getByRole('table', { name: 'Models today' }).getByRole('row').filter({ hasText: 'dear' }).waitFor();
  await page.getByRole('table', { name: 'Keys today' }).getByRole('row').filter({ hasText: 'poor' }).waitFor();
  await leave();
});

test('the playground: two models, tools, an image, a stop, an error, and the code of it', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(house.origin + '/console/#/playground?model=dear&beside=cheap');
  await page.getByRole('button', { name: 'Make a key for the playground' }).click();
  await page.getByText('A key is needed').waitFor({ state: 'detached' });
  const { keys } = await house.admin('GET', '/keys');
  const key = keys.find((k) => k.name.startsWith('playground admin'));
  assert.equal(`${key.budgets[0].amount}/${key.budgets[0].period}`, '1/total');
  assert.ok(Date.parse(key.expires) - Date.now() < 25 * 3600_000);

  const ask = async (prompt) => {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByRole('button', { name: 'Send', exact: true }).click();
  };
  const left = page.getByRole('article', { name: 'Answer of dear' });
  const right = page.getByRole('article', { name: 'Answer of cheap' });
  await page.getByText('System prompt, temperature').click();
  await page.getByLabel('System prompt').fill('Be short.');
  await page.getByLabel('Max tokens').fill('500');
  await page.getByLabel('Reasoning effort').selectOption('low');
  await ask('Hello');
  for (const [of, said] of [[left, 'Hello from big.'], [right, 'Hello from small.']]) {
    await of.getByText(said).waitFor();
    await of.getByText('Reasoning').waitFor();
    assert.equal(await of.getByText('Let me think.').isVisible(), false, 'reasoning is not folded');
    const id = decodeURIComponent((await of.getByRole('link', { name: 'the call' }).getAttribute('href')).split('/').pop());
    const call = await house.admin('GET', '/calls/' + id);
    await of.getByTitle('$' + call.cost_usd).waitFor();
    assert.match(await of.innerText(), new RegExp(`${call.total_tokens - call.output_tokens - call.reasoning_tokens} in, ${call.output_tokens + call.reasoning_tokens} out`));
  }

  await page.getByLabel('Tools').fill('{');
  await page.locator('#tools-hint .wrong').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled(), true);
  await page.getByLabel('Tools').fill('[{"name": "weather", "parameters": {"type": "object"}}]');
  await ask('call weather {"city":"Oslo"}');
  await left.nth(1).getByLabel('Arguments of weather').getByText('"city": "Oslo"').waitFor();
  await left.nth(1).getByLabel('Result of weather').fill('sunny');
  await right.nth(1).getByLabel('Result of weather').waitFor();
  await left.nth(1).getByRole('button', { name: 'Send the results' }).click();
  await left.getByText('The tool said: sunny').waitFor();
  await page.getByLabel('Tools').fill('');

  await page.locator('input[type=file]').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: pixel });
  await ask('What is it?');
  await right.getByText('I see an image of image/png').waitFor();
  const last = (await upstream.requests()).findLast((r) => r.body.includes('"What is it?"'));
  assert.ok(last.body.includes('data:image/png;base64,' + pixel.toString('base64')), 'the image did not come whole');
  const sent = JSON.parse(last.body);
  assert.deepEqual([sent.messages[0], sent.max_completion_tokens ?? sent.max_tokens], [{ role: 'system', content: 'Be short.' }, 500]);

  await ask('[[fault:stall]]');
  await left.nth(4).getByText('Reasoning').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await left.nth(4).getByText('Stopped.').waitFor();
  await ask('[[fault:status-429]]');
  await left.nth(5).getByText('The gateway answered 429').waitFor();
  await left.nth(5).getByText('"code": "rate_limit_exceeded"').waitFor();

  await page.getByText('copy as code').click();
  const curl = await page.getByLabel('curl for dear').innerText();
  const request = JSON.parse(curl.split("<<'JSON'\n")[1].replace(/\nJSON\s*$/, ''));
  assert.deepEqual(request.messages.map((m) => m.role), ['system', 'user', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'user']);
  assert.equal(curl.includes('limen_'), false, 'the key is in the code');
  await page.getByRole('button', { name: 'Python' }).click();
  assert.match(await page.getByLabel('Python for cheap').innerText(), /client\.chat\.completions\.create\(\s+model="cheap"/);
  await leave();
});

// seed makes calls by a key of its own, and says which.
async function seed() {
  const key = await house.admin('POST', '/keys', { name: 'seed' });
  const say = (model, content, more = {}) => fetch(house.base + '/chat/completions', {
    method: 'POST', headers: { Authorization: 'Bearer ' + key.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }], ...more }),
  }).then((r) => r.text());
  for (let i = 0; i < 64; i++) await say(i % 4 ? 'cheap' : 'dear', i % 3 ? 'cached, please' : 'Hello', { metadata: { project: i % 2 ? 'red' : 'blue' }, stream: i % 5 === 0 });
  for (let i = 0; i < 3; i++) await say('cheap', '[[fault:status-500]]');
  await say('second', 'Hello');
  return key;
}
let seeded;
const seedOnce = () => (seeded ??= seed());

test('calls: filters are in the address, older ones come, and what is filtered can be taken away', async () => {
  const key = await seedOnce();
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(house.origin + '/console/#/calls?live=off');
  await page.getByLabel('Key', { exact: true }).selectOption({ label: 'seed' });
  await page.getByRole('button', { name: 'Older calls' }).waitFor();
  const rows = page.locator('tbody tr');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 50);
  await page.getByRole('button', { name: 'Older calls' }).click();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 68);
  assert.equal(await page.getByRole('button', { name: 'Older calls' }).count(), 0);
  assert.equal(new Set(await rows.locator('td:first-child a').evaluateAll((all) => all.map((a) => a.href))).size, 68, 'a call is there twice');

  await page.getByLabel('Model', { exact: true }).selectOption('cheap');
  await page.getByLabel('Outcome').selectOption('failed');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 3);
  assert.match(page.url(), new RegExp(`key=${key.id}`));
  assert.match(page.url(), /model=cheap.*failed=true|failed=true.*model=cheap/);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 3);
  const file = async (name) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name, exact: true }).click()]);
    return readFile(await download.path(), 'utf8');
  };
  const csv = (await file('CSV')).trim().split('\n');
  assert.equal(csv.length, 4);
  assert.ok(csv.slice(1).every((line) => line.includes(',cheap,') && line.includes(',seed,')), csv.join('\n'));
  const json = (await file('JSON')).trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(json.map((c) => [c.model, c.key, c.status]), Array(3).fill(['cheap', key.id, json[0].status]));

  await page.getByLabel('Outcome').selectOption('200');
  await page.getByLabel('Costs at least').fill('5');
  await page.keyboard.press('Tab');
  await page.getByText('No call is like that').waitFor();
  await page.getByRole('link', { name: 'Show all calls' }).click();
  await page.getByRole('button', { name: 'Live' }).waitFor();
  await rows.first().getByText('seed').waitFor();
  const before = await rows.count();
  await house.say(key.key, 'a new one', 'dear');
  await rows.first().getByRole('link', { name: 'dear', exact: true }).waitFor();
  assert.ok(await rows.count() >= before);
  await leave();
});

test('a call says why: its attempts as bars, and what its cost is made of', async () => {
  const key = await seedOnce();
  const { calls } = await house.admin('GET', `/calls?key=${key.id}&model=second`);
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(`${house.origin}/console/#/calls/${calls[0].request_id}`);
  const falls = page.locator('.falls li:not(.axis)');
  await page.getByText('Answered at attempt 2').waitFor();
  assert.equal(await falls.count(), 2);
  const bars = await falls.evaluateAll((all) => all.map((li) => {
    const whole = li.querySelector('svg').getBoundingClientRect();
    const bar = li.querySelector('rect').getBoundingClientRect();
    return { kind: li.className, from: bar.left - whole.left, width: bar.width, whole: whole.width };
  }));
  assert.deepEqual(bars.map((b) => b.kind), ['failed', 'ok']);
  assert.ok(bars[1].from >= bars[0].from + bars[0].width * 0.9 && bars.every((b) => b.width > 0 && b.width <= b.whole), JSON.stringify(bars));

  const shown = await house.admin('GET', '/calls/' + calls[0].request_id);
  assert.deepEqual(shown.cost_parts.map((p) => p.kind), ['input', 'output']);
  const nano = (n) => Math.round(n * 1e9);
  assert.equal(shown.cost_parts.reduce((n, p) => n + nano(p.cost_usd), 0), nano(shown.cost_usd));
  for (const part of shown.cost_parts) await page.locator('table').getByTitle('$' + part.cost_usd).waitFor();
  await page.getByText('They are not kept').waitFor();
  await leave();
});

test('usage: the numbers are those of the API, by chart, table and file', async () => {
  const key = await seedOnce();
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(`${house.origin}/console/#/usage?range=today&key=${key.id}`);
  await page.locator('.chart canvas').waitFor();
  const since = await page.evaluate(() => { const d = new Date(); d.setHours(0, 0, 0, 0); return d.toISOString(); });
  const asked = `since=${since}&key=${key.id}&by=model`;
  const usage = await house.admin('GET', '/usage?' + asked);
  const times = await house.admin('GET', '/usage/latency?' + asked);
  const table = page.getByRole('table', { name: 'Usage by model' });
  assert.equal(await table.locator('tbody tr').count(), usage.groups.length);
  for (const group of usage.groups) {
    const row = table.getByRole('row').filter({ has: page.getByRole('link', { name: group.model, exact: true }) });
    assert.equal(await row.locator('[data-name=Calls]').innerText(), String(group.calls));
    assert.equal(await row.locator('[data-name=Errors]').innerText(), String(group.failed));
    assert.equal(await row.locator('[data-name=Tokens] span').getAttribute('title'), group.total_tokens.toLocaleString('en-US'));
    assert.equal(Number((await row.locator('[data-name=Cost] span').getAttribute('title')).slice(1)), group.cost_usd);
  }
  assert.equal(times.whole, true);
  assert.deepEqual(times.groups.map((g) => [g.model, g.calls]), usage.groups.map((g) => [g.model, g.calls - g.failed]));
  const all = await page.getByLabel('In all', { exact: true }).innerText();
  const cached = usage.cache_read_tokens / (usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens) * 100;
  assert.match(all, new RegExp(`Cached input\\s+${Math.round(cached)} %`));
  assert.match(all, /This month[^≈]+≈ \$/);

  const line = page.getByRole('button', { name: 'cheap', exact: true });
  await line.focus();
  await page.keyboard.press('Enter');
  assert.equal(await line.getAttribute('aria-pressed'), 'false');
  const dashes = await page.locator('.legend line').evaluateAll((all) => all.map((l) => l.getAttribute('stroke-dasharray')));
  assert.equal(new Set(dashes).size, dashes.length);

  const [download] = await Promise.all([page.waitForEvent('download'), page.getByText('This table:').getByRole('link', { name: 'CSV' }).click()]);
  const csv = (await readFile(await download.path(), 'utf8')).trim().split('\n').map((text) => text.split(','));
  assert.deepEqual(csv.slice(1).map((cells) => cells.slice(0, 3)), usage.groups.map((g) => [g.model, String(g.calls), String(g.failed)]));
  await page.getByLabel('Show', { exact: true }).selectOption({ label: 'First token, median' });
  await page.getByRole('heading', { name: 'First token, median by model' }).waitFor();
  await page.locator('.chart canvas').waitFor();
  assert.match(page.url(), /show=first/);
  await leave();
});
