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
