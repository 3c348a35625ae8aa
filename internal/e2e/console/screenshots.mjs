// The pictures of docs/console.md, and that page: a gateway with a month behind it, every page in light and
// in dark. PASTCALLS_BIN names the program that gives it the month.

import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { logIn, openHouse } from './harness.mjs';
import { open, pagesOf, settled } from './pages.mjs';
import { smaller } from './png.mjs';
import { clients, randomly, shapes, sampleConfig, vendors } from './sample.mjs';
import { openVendor } from './vendor.mjs';

const docs = path.resolve(import.meta.dirname, '../../../docs');
const images = path.join(docs, 'images/console');
const most = 120_000; // bytes of a picture

/**
 * What each page is called and shows, by the address that its navigation or its lists have.
 * @type {[string, string, string, RegExp][]} name, title, sentence, address
 */
const said = [
  ['home', 'Home', 'What today brought, what is set up and what is missing, and the newest calls.', /^home$/],
  ['connect', 'Connect', 'The settings of each client with address, key and model filled in, and a box that turns green when its first call arrives, or says what was wrong with it.', /^connect/],
  ['keys', 'Keys', 'Who may call, how much of each budget is spent, and when a key was last used.', /^keys$/],
  ['key', 'A key', 'Its budgets and limits, what it may use, and where it is changed, rotated or revoked.', /^keys\/(?!new)/],
  ['new-key', 'A new key', 'A name is enough; budgets, limits and what it may do can be said as well. Every form shows the request that it makes as curl.', /^keys\/new/],
  ['teams', 'Teams', 'Budgets and limits that keys share.', /^teams$/],
  ['team', 'A team', 'What it may spend, and who belongs to it.', /^teams\/(?!new)/],
  ['new-team', 'A new team', 'It can belong to another one, whose budgets count as well.', /^teams\/new/],
  ['calls', 'Calls', 'Every call as it comes in, by key, team, model, outcome, tag and time.', /^calls$/],
  ['call', 'A call', 'The way it went: who was asked when, who failed and why, what it cost and what was changed on the way.', /^calls\//],
  ['usage', 'Usage', 'Cost, calls, tokens and errors over time, by model, key, team, provider or tag.', /^usage/],
  ['models', 'Models', 'What clients can ask for, what it costs, and how it stands with those who serve it.', /^models$/],
  ['model', 'A model', 'Its prices, its targets and their health.', /^models\/(?!new)/],
  ['new-model', 'A new model', 'A name of your own with several targets behind it.', /^models\/new/],
  ['providers', 'Providers', 'Where calls are sent, and whether it answers.', /^providers$/],
  ['provider', 'A provider', 'What is set of it, and a test that makes a real call.', /^providers\/(?!new)/],
  ['new-provider', 'A new provider', 'A vendor by its name, or anything that speaks a known dialect.', /^providers\/new/],
  ['playground', 'Playground', 'One prompt, two models beside each other, through the same door as every client.', /^playground/],
  ['configuration', 'Configuration', 'The document that is in force, checked while it is written, with its versions and their differences.', /^config(uration)?$/],
  ['versions', 'Versions', 'Who changed the configuration when, and what; each can be taken back to.', /^config(uration)?\/(versions|history)$/],
  ['version', 'A version', 'What one change of the configuration changed.', /^config(uration)?\/(versions|history)\/./],
  ['secrets', 'Secrets', 'The keys of providers, which can be set and never read.', /^(config(uration)?\/)?secrets/],
  ['users', 'Users', 'Who may log in, and what for.', /^users$/],
  ['user', 'A user', 'What somebody may do.', /^users\/(?!new)/],
  ['new-user', 'A new user', 'An owner, an admin, a viewer, or a member of one team.', /^users\/new/],
  ['tokens', 'Tokens', 'How programs use the admin API: each with scopes and an end.', /^tokens$/],
  ['new-token', 'A new token', 'It is shown once.', /^tokens\/new/],
  ['audit', 'Audit', 'Every change: who, when, from where, what, on what, and its outcome.', /^audit/],
  ['account', 'My account', 'Where somebody is logged in, and where a password is changed.', /^account/],
  ['sessions', 'Sessions', 'Who is logged in from where; a session can be ended.', /^sessions/],
];

const vendor = await openVendor({ models: Object.values(vendors).flat(), answer: ({ model, messages }) => shapes(model, messages.at(-1).content) });
const house = await openHouse(sampleConfig(vendor.url));
try {
  const { prices } = await furnish();
  const { page, leave } = await house.visit({ viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1, reducedMotion: 'reduce', timezoneId: 'Europe/Berlin' });
  // The vendor of the pictures is nobody's, and their files are nowhere: they are told as what they stand for.
  await page.route('**/api/v1/**', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: (await answer.text()).replaceAll(vendor.url.replace(/\/v1$/, ''), 'https://api').replaceAll(/https:\/\/api\/(\w+)\//g, 'https://api.$1.com/')
      .replaceAll(/[^" ]*\/limen-console-\w+\/data/g, '/var/lib/limen').replaceAll(/[^" ]*\/limen-console-\w+\//g, '/etc/limen/').replaceAll('127.0.0.1:0\\n', '127.0.0.1:8080\\n') });
  });
  await logIn(page, house.password);
  await makeCalls(prices);
  const unnamed = (await pagesOf(page)).filter((at) => !said.some(([, , , is]) => is.test(at)));
  if (unnamed.length) throw new Error(`screenshots.mjs has no words for ${unnamed.join(', ')}`);
  await mkdir(images, { recursive: true });
  const shown = [];
  const all = await pagesOf(page);
  for (const [name, title, sentence, is] of said) {
    const at = await bestOf(page, name, all.find((one) => is.test(one)));
    if (at === undefined) continue;
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(() => { location.hash = '#/nothing'; });
      await open(page, at);
      if (name === 'usage') await page.locator('.uplot canvas').waitFor();
      if (name === 'playground') await talk(page);
      await page.evaluate(() => document.activeElement?.blur());
      await page.evaluate(() => scrollTo(0, 0));
      await page.mouse.move(0, 0);
      const picture = smaller(await page.screenshot());
      if (picture.length > most) console.warn(`${name}-${colorScheme}.png has ${picture.length} bytes`);
      await writeFile(path.join(images, `${name}-${colorScheme}.png`), picture);
    }
    shown.push({ name, title, sentence });
  }
  await writeFile(path.join(docs, 'console.md'), document(shown));
  console.log(`${shown.length} pages, twice`);
  await leave();
} finally {
  await house.close();
  vendor.close();
}

/** furnish makes teams, keys and people, and tells the prices of models. */
async function furnish() {
  const money = {};
  for (const [name, budget] of [['platform', '400/month'], ['support', '150/month'], ['research', '250/month soft']]) await house.admin('POST', '/teams', { name, budgets: [budget] });
  for (const c of clients) c.made = await house.admin('POST', '/keys', { name: c.name, team: c.team, owner: c.owner, budgets: c.budgets, limits: c.limits });
  await house.admin('POST', '/keys/first/revoke', {});
  for (const [name, role, team] of [['mara', 'admin'], ['jonas', 'member', 'support'], ['auditor', 'viewer']]) await house.admin('POST', '/users', { name, role, team });
  await house.admin('POST', '/tokens', { name: 'terraform', scopes: ['keys', 'config'], expires: new Date(Date.now() + 90 * 864e5).toISOString() });
  await house.admin('POST', '/tokens', { name: 'grafana', scopes: ['usage'], expires: new Date(Date.now() + 30 * 864e5).toISOString() });
  const { models } = await house.admin('GET', '/models');
  for (const m of models) money[m.id] = m.usd_per_million_tokens;
  return { prices: money };
}

/** makeCalls gives the house a month, and the last minute by calls that are made. */
async function makeCalls(prices) {
  const { data } = await house.admin('GET', '/config');
  const teams = Object.fromEntries((await house.admin('GET', '/teams')).teams.map((t) => [t.name, t.id]));
  const random = randomly(7);
  const past = [];
  const now = Date.now();
  for (let day = 59; day >= 0; day--) { // half of it is what the other half is compared with
    for (const c of clients) {
      const weekend = [0, 6].includes(new Date(now - day * 864e5).getDay());
      const n = Math.round(c.daily * (weekend ? c.weekend ?? 0.15 : 1) * (0.7 + random() * 0.6) * (1 - day / 120));
      for (let i = 0; i < n; i++) {
        const at = new Date(now - day * 864e5 - (2 + random() * (day ? 600 : 420)) * 60e3);
        past.push(c.call({ at, random, prices, key: c.made.id, team: teams[c.team] }));
      }
    }
  }
  past.sort((a, b) => a.At - b.At);
  const done = spawnSync(process.env.PASTCALLS_BIN ?? 'pastcalls', [data], { input: JSON.stringify(past) });
  if (done.status !== 0) throw new Error(`pastcalls: ${done.stderr}`);
  for (let i = 0; i < 3; i++) {
    for (const c of clients) {
      if (!c.prompts[i]) continue;
      const answer = await fetch(house.base + '/chat/completions', {
        method: 'POST', headers: { Authorization: 'Bearer ' + c.made.key, 'Content-Type': 'application/json', ...(c.project && { 'X-Project': c.project }) },
        body: JSON.stringify({ model: c.model, stream: true, messages: [{ role: 'user', content: c.prompts[i] }] }),
      });
      await answer.text();
    }
  }
}

/** bestOf is the page to show of those of its kind. */
async function bestOf(page, name, at) {
  if (name === 'key') return 'keys/' + clients[0].made.id;
  if (name === 'team') return 'teams/' + (await house.admin('GET', '/teams')).teams.find((t) => t.name === 'platform').id;
  if (name === 'call') return 'calls/' + (await house.admin('GET', '/calls?model=coding&limit=200')).calls.find((c) => c.steps?.length > 1).request_id;
  if (name === 'model') return 'models/coding';
  if (name === 'connect') return `connect?key=${clients[0].made.id}&model=coding&client=codex`;
  if (name === 'usage') return 'usage?range=30';
  if (name === 'playground') return 'playground?model=coding&beside=fast';
  return at;
}

async function talk(page) {
  await page.getByLabel('Key', { exact: true }).fill(clients[0].made.key);
  await page.getByLabel('Prompt', { exact: true }).fill('In one sentence: what does a gateway for models do?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('link', { name: 'the call' }).nth(1).waitFor();
  await settled(page);
}

/** document is docs/console.md. */
function document(shown) {
  const pages = shown.map(({ name, title, sentence }) => `## ${title}

${sentence}

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/console/${name}-dark.png">
  <img alt="${title}" src="images/console/${name}-light.png" width="1280">
</picture>
`);
  return `# Console

The console is at \`/console/\` of every gateway. It shows and does what the admin API does, and needs nothing besides. Its pages follow your
system's choice of light or dark, fit a phone, and can be used with the keyboard alone: \`/\` finds keys, models, teams, calls and pages.
How it is built and served is in [architecture.md](architecture.md#console). The pictures are made by \`make screenshots\`.

${pages.join('\n')}`;
}
