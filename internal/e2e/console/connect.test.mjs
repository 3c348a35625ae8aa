// Connect, with the programs that people set up from it: what the page shows is what they run.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { modules, skipCLIs } from '../clients/harness.mjs';
import { quiet } from '../clients/quiet.mjs';
import { logIn, openHouse } from './harness.mjs';

const installed = (file) => existsSync(modules + file);

let house, dir;
before(async () => {
  [house, dir] = await Promise.all([openHouse(), mkdtemp(path.join(tmpdir(), 'limen-connect-'))]);
  if (installed('openai')) await symlink(modules, path.join(dir, 'node_modules'));
});
after(async () => {
  await house?.close();
  if (dir) await rm(dir, { recursive: true, force: true, maxRetries: 5 });
});

// run runs a program, which ends by itself or with its test. What came of it is for the box to tell.
const running = new Set();
function run(file, args, env = {}) {
  const child = spawn(file, args, { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, TMPDIR: dir, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (b) => { said += b; });
  running.add(child);
  return new Promise((resolve) => {
    child.once('error', (err) => resolve(String(err)));
    child.once('close', () => { running.delete(child); resolve(said); });
  });
}
afterEach(() => {
  for (const child of running) {
    try {
      process.kill(-child.pid, 'SIGKILL'); // its group: a client may be a launcher of others
    } catch {
      // It has just ended.
    }
  }
  running.clear();
});
const shell = (text) => run('sh', ['-c', text]);

const choose = (page, title) => page.getByRole('group', { name: 'Client' }).getByRole('button', { name: title, exact: true }).click();

// settings of a client, as the page shows them.
async function settings(page, title) {
  await choose(page, title);
  const text = await page.getByLabel(`Settings of ${title}`, { exact: true }).innerText();
  const variable = page.getByLabel("The key's variable");
  const [, name, key] = await variable.count() ? /^export (\w+)='(.*)'$/.exec((await variable.innerText()).trim()) : [];
  return { text, env: name ? { [name]: key } : {}, file: await page.locator('.card header .mono').last().innerText() };
}

test('from the first start to a verified call there are four steps', async (t) => {
  const started = performance.now();
  const { page, leave } = await house.visit({ permissions: ['clipboard-read', 'clipboard-write'] });
  await page.goto('about:blank');
  await page.goto(house.link); // 1: what the welcome shows is opened
  await page.getByRole('button', { name: 'Make a key' }).click(); // 2
  await page.getByLabel('Settings of curl').getByText('Bearer limen_').waitFor();
  await page.getByRole('button', { name: 'Copy' }).first().click(); // 3
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(await shell(copied), /echo: Hello/); // 4: it is pasted
  await page.getByText('It works').waitFor();
  await page.getByText(/^curl called echo: 200 after/).waitFor();
  t.diagnostic(`${((performance.now() - started) / 1000).toFixed(1)} s from the link to the green box, without reading`);
  assert.ok(!page.url().includes('link='), 'the link is in the address');
  const again = await house.visit();
  await again.page.goto('about:blank');
  await again.page.goto(house.link);
  await again.page.getByText('This link was used').waitFor();
  await again.leave();
  await leave();
});

test('what is wrong with a request is said, until it is right', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(house.origin + '/console/#/connect');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByLabel('Settings of curl').getByText('Bearer limen_').waitFor();
  const { text } = await settings(page, 'curl');
  const key = /limen_\w+/.exec(text)[0];
  const box = page.locator('.wait');
  for (const [wrong, says] of [
    [text.replace('/v1/chat', '/chat'), ['Wrong path: it asked /chat/completions', `The base URL must end in /v1: set it to ${house.base} in the client.`]],
    [text.replace(key, key.slice(0, -4)), ['Wrong key', 'check that it was copied whole. It begins as that of curl']],
    [text.replace('"echo"', '"ecko"'), ['Unknown model: ecko', 'The nearest that you can use: echo.']],
    [text.replace(/-H 'Auth.*\\\n/, '\\\n'), ['No key', "You didn't provide an API key."]],
  ]) {
    await shell(wrong);
    for (const words of says) await box.getByText(words).first().waitFor();
  }
  assert.deepEqual((await box.locator('.faults strong').allInnerTexts()).map((s) => s.split(':')[0]), ['Wrong path', 'Wrong key', 'Unknown model', 'No key']);
  assert.ok(!(await box.innerText()).includes(key.slice(20, 40)), 'the key is shown');
  await run('curl', ['-s', '-A', 'claude-cli/2.1.329 (external, cli)', house.origin + '/v1/v1/messages', '-d', '{}']);
  await box.getByText('Meanwhile').waitFor();
  await shell(text.replace(key, house.key));
  await box.getByText('It came with another key').waitFor();
  await box.getByText('called echo with first').waitFor();
  await shell(text);
  await box.getByText('It works').waitFor();
  assert.equal(await box.locator('.faults').count(), 0);
  await box.getByRole('button', { name: 'Claude Code' }).click();
  await box.getByText('Wrong path: it asked /v1/v1/messages').waitFor();
  await choose(page, 'Codex');
  await box.getByText('Waiting for Codex').waitFor();
  await box.getByRole('button', { name: 'Send it from here' }).click();
  await box.getByText('This browser called echo').waitFor();
  await leave();
});

// Programs by the name that the page gives them: what they need, and how they are run with what it shows.
const script = (name) => async (s) => {
  await writeFile(path.join(dir, name), s.text);
  return run(name.endsWith('.py') ? 'python3' : process.execPath, [name]);
};
// A program in Go, with the library that the tests of it have.
const sdk = fileURLToPath(new URL('../sdk', import.meta.url));
const program = async (s) => {
  await writeFile(path.join(dir, 'main.go'), s.text);
  return run('go', ['run', '-C', sdk, path.join(dir, 'main.go')], { HOME: process.env.HOME });
};
const agent = (file, ...args) => [skipCLIs ? false : installed(file), async (s) => {
  const at = s.file.replace('~', dir);
  await mkdir(path.dirname(at), { recursive: true });
  await writeFile(at, s.text);
  return run(modules + file, args, { ...s.env, ...quiet });
}];
const programs = {
  'OpenAI, JavaScript': [installed('openai'), script('openai.mjs')],
  'OpenAI, Python': [() => run('python3', ['-c', 'import openai']).then((said) => !said), script('openai_.py')],
  'OpenAI, Go': [true, program],
  'LangChain, JavaScript': [installed('@langchain/openai'), script('langchain.mjs')],
  'LangChain, Python': [() => run('python3', ['-c', 'import langchain_openai']).then((said) => !said), script('langchain_.py')],
  'Vercel AI SDK': [installed('ai') && installed('@ai-sdk/openai-compatible'), script('ai.mjs')],
  Codex: agent('.bin/codex', 'exec', '--skip-git-repo-check', '--json', 'Say hello.'),
  'Claude Code': agent('@anthropic-ai/claude-code-linux-x64/claude', '-p', 'Say hello.'),
  Cline: agent('@cline/cli-linux-x64/bin/cline', '--json', 'Say hello.'),
  Continue: agent('.bin/cn', '-p', 'Say hello.'),
  opencode: agent('opencode-linux-x64/bin/opencode', 'run', 'Say hello.'),
  'Qwen Code': agent('.bin/qwen', '-p', 'Say hello.'),
};

test('programs that are set up with what the page shows are seen to arrive', async (t) => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.goto(house.origin + '/console/#/connect');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByLabel('Settings of curl').getByText('Bearer limen_').waitFor();
  const started = [];
  for (const [title, [can, start]] of Object.entries(programs)) {
    if (!(typeof can === 'function' ? await can() : can)) {
      t.diagnostic(`${title} is not installed`);
      continue;
    }
    const shown = await settings(page, title);
    started.push({ title, said: start(shown) });
  }
  for (const { title, said } of started) {
    await choose(page, title);
    const green = page.locator('.wait.arrived').getByText(`${title} called echo`);
    await Promise.race([green.waitFor({ timeout: 120_000 }), said.then(async (text) => {
      await green.waitFor({ timeout: 5000 }).catch(() => assert.fail(`${title} did not arrive: ${text.slice(-3000)}`));
    })]);
    t.diagnostic(`${title}: ${(await green.innerText()).split('\n')[0]}`);
  }
  await leave();
});
