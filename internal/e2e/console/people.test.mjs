// People and what they may do: roles, users, tokens, sessions and the audit log.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openHouse } from './harness.mjs';

let house;
const word = 'hold the door';
before(async () => {
  house = await openHouse();
  await house.admin('POST', '/teams', { name: 'above', budgets: ['20/month'] });
  await house.admin('POST', '/teams', { name: 'below', parent: 'above' });
  await house.admin('POST', '/keys', { name: 'mine', team: 'below' });
  await house.admin('POST', '/keys', { name: 'others' });
  for (const role of ['owner', 'admin', 'viewer']) await house.admin('POST', '/users', { name: role + '1', role, password: word });
  await house.admin('POST', '/users', { name: 'member1', role: 'member', team: 'above', password: word });
});
after(() => house?.close());

async function enter(user, password = word) {
  const visit = await house.visit();
  await visit.page.getByLabel('User').fill(user);
  await visit.page.getByLabel('Password').fill(password);
  await visit.page.getByRole('button', { name: 'Log in' }).click();
  await visit.page.getByRole('button', { name: 'Log out' }).waitFor();
  return visit;
}

const open = async (page, at) => {
  await page.goto(`${house.origin}/console/#/${at}`);
  await page.locator('main h1').waitFor();
  await page.waitForFunction(() => !document.querySelector('.loading'));
};

const ask = (path, token) => fetch(house.origin + '/api/v1' + path, { headers: { Authorization: 'Bearer ' + token } });

// What each role sees of the pages whose buttons it may not all use.
const seen = {
  owner: { users: ['New user', 'Change', 'Reset password', 'Delete'], tokens: ['New token'], keys: ['New key'], 'keys/mine': ['Change', 'Rotate', 'Revoke'], teams: ['New team'], 'teams/below': ['Change', 'Delete'], audit: [] },
  admin: { users: [], tokens: [], keys: ['New key'], 'keys/mine': ['Change', 'Rotate', 'Revoke'], teams: ['New team'], 'teams/below': ['Change', 'Delete'], audit: [] },
  viewer: { users: [], tokens: [], keys: [], 'keys/mine': [], teams: [], 'teams/below': [], audit: [] },
  member: { keys: [], 'keys/mine': [], teams: [], 'teams/below': [] },
};
const changing = ['New user', 'New token', 'New key', 'New team', 'Change', 'Reset password', 'Rotate', 'Revoke', 'Delete'];

for (const [role, pages] of Object.entries(seen)) {
  test(`as ${role}, one sees what one may, and no more`, async () => {
    const { page, leave } = await enter(role + '1');
    const refused = [];
    page.on('response', (r) => r.status() === 403 && refused.push(r.url()));
    const offered = await page.locator('nav ul a').evaluateAll((all) => all.map((a) => a.getAttribute('href').slice(2)));
    assert.equal(offered.includes('users'), role !== 'member');
    assert.equal(offered.includes('audit'), role !== 'member');
    for (const at of new Set([...role === 'member' ? offered : [], 'account', ...Object.keys(pages)])) {
      await open(page, at);
      assert.deepEqual(await page.locator('main [role=alert]').allInnerTexts(), [], at);
      const wanted = pages[at];
      if (!wanted) continue;
      const there = await page.locator('main').locator('button, a.button').allInnerTexts();
      assert.deepEqual([...new Set(there)].filter((text) => changing.includes(text)).sort(), [...wanted].sort(), at);
    }
    await open(page, 'keys');
    assert.equal(await page.locator('main table').getByText('others').count(), role === 'member' ? 0 : 1);
    assert.deepEqual(refused, [], 'what one may not see is asked for');
    if (role === 'member') {
      await open(page, 'users');
      await page.getByRole('heading', { name: 'Users is not for you' }).waitFor();
    }
    await leave();
  });
}

test('a user is made, changed and deleted by keyboard alone', async () => {
  const { page, leave } = await enter('owner1');
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim() || document.activeElement.name);
  const tab = async (wanted) => {
    for (let i = 0; i < 90 && !(await focused())?.startsWith(wanted); i++) await page.keyboard.press('Tab');
    assert.ok((await focused())?.startsWith(wanted), `${wanted} cannot be reached`);
    await page.keyboard.press('Enter');
  };
  await tab('Users');
  await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor();
  await page.getByRole('table', { name: 'Users' }).waitFor();
  await tab('New user');
  await page.getByRole('dialog', { name: 'New user' }).waitFor();
  await page.waitForFunction(() => document.activeElement.name === 'name');
  await page.keyboard.type('by-hand');
  await page.keyboard.press('Tab');
  await page.keyboard.type('member');
  await page.getByLabel('Team').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.type('below');
  await tab('Make the user');
  const password = (await page.getByLabel('The new password').innerText()).trim();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const { users } = await house.admin('GET', '/users');
  assert.equal(users.find((u) => u.name === 'by-hand').team, 'below');
  const theirs = await enter('by-hand', password);
  assert.equal(await page.getByText(password).count(), 0, 'the password is shown again');

  // Who is deleted is out with the next question.
  await tab('Delete by-hand');
  await page.getByRole('dialog').waitFor();
  await tab('Delete');
  await page.getByText('Deleted.').waitFor();
  await theirs.page.goto(house.origin + '/console/#/teams');
  await theirs.page.getByRole('button', { name: 'Log in' }).waitFor();
  await theirs.leave();
  await leave();
});

test('a token is made, works, and is revoked', async () => {
  const { page, leave } = await enter('owner1');
  await open(page, 'tokens/new');
  await page.getByLabel('Name').fill('robot');
  await page.getByLabel('usage sees').check();
  await page.getByLabel('read sees').uncheck();
  await page.getByRole('button', { name: 'Make the token' }).click();
  const token = (await page.getByLabel('The new token').innerText()).trim();
  assert.match(token, /^limen_admin_/);
  assert.ok((await page.getByLabel('A first question').innerText()).includes(`/api/v1/usage' \\\n  -H 'Authorization: Bearer ${token}'`));
  assert.equal((await ask('/usage', token)).status, 200);
  assert.equal((await ask('/keys', token)).status, 403);
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Revoke robot' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('Revoked.').waitFor();
  assert.equal((await ask('/usage', token)).status, 401);
  await open(page, 'audit?object=robot');
  await page.getByText('owner1 revoked a token robot').waitFor();
  await page.getByText('owner1 made a token robot').waitFor();
  await leave();
});

test('a session that is ended goes on to the login, and the audit log says who did it', async () => {
  const theirs = await enter('viewer1');
  const { page, leave } = await enter('owner1');
  await open(page, 'users');
  await page.getByRole('button', { name: /^End the session of viewer1/ }).first().click();
  for (;;) { // also those of tests before
    await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const { sessions } = await house.admin('GET', '/sessions');
    if (!sessions.some((s) => s.user === 'viewer1')) break;
    await open(page, 'account');
    await open(page, 'users');
    await page.getByRole('button', { name: /^End the session of viewer1/ }).first().click();
  }
  await theirs.page.evaluate(() => { location.hash = '#/keys'; });
  await theirs.page.getByRole('button', { name: 'Log in' }).waitFor();
  await theirs.leave();
  await open(page, 'audit?who=owner1&on=sessions');
  await page.getByText('owner1 ended a session').first().waitFor();
  await leave();
});

test('people change their own password, and their other sessions end', async () => {
  const other = await enter('admin1');
  const { page, leave } = await enter('admin1');
  await open(page, 'account');
  await page.getByLabel('Old password').fill('a wrong guess');
  await page.getByLabel('New password').fill('battery staple');
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByText('The old password is another.').waitFor();
  await page.getByLabel('Old password').fill(word);
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByText('The password is changed.').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('table tbody tr').length === 1);
  await other.page.evaluate(() => { location.hash = '#/keys'; });
  await other.page.getByRole('button', { name: 'Log in' }).waitFor();
  await other.leave();
  await leave();
  await (await enter('admin1', 'battery staple')).leave();
});

test('the audit log goes back page by page, and counts who failed to log in', async () => {
  for (let i = 0; i < 3; i++) await fetch(house.origin + '/api/v1/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ user: 'member1', password: 'a wrong guess' }) });
  for (let i = 0; i < 60; i++) await house.admin('PATCH', '/keys/others', { owner: `owner ${i}` });
  const { page, leave } = await enter('owner1');
  await open(page, 'audit?on=keys');
  const rows = () => page.locator('tbody tr').count();
  assert.equal(await rows(), 50);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.getByText('That is all.').waitFor();
  assert.ok(await rows() > 60);
  await page.getByLabel('Outcome').selectOption('refused');
  await page.getByLabel('What kind').selectOption('logins and passwords');
  await page.getByText('member1 failed to log in ×3').waitFor();
  await page.getByText('as curl').click();
  assert.match(await page.getByLabel('as curl').innerText(), /audit\?on=session&failed=true&limit=50/);
  await leave();
});

test('a key that is revoked calls nothing more, and works again when it is restored', async () => {
  const { key } = await house.admin('POST', '/keys', { name: 'lost' });
  assert.equal((await house.say(key, 'Hello')).status, 200);
  const { page, leave } = await enter('admin', house.password);
  await open(page, 'keys/lost');

  // What is typed stays, although the page asks again and again how it stands with the key.
  await page.getByRole('button', { name: 'Change' }).click();
  await page.getByLabel('Owner').fill('somebody');
  const asked = page.waitForResponse((r) => r.url().endsWith('/keys/lost'));
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await (await asked).finished();
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  assert.equal(await page.getByLabel('Owner').inputValue(), 'somebody');
  await page.keyboard.press('Escape');

  for (const [label, status] of [['Revoke', 401], ['Restore', 200]]) {
    await page.getByRole('button', { name: label }).click();
    await page.getByRole('dialog').getByRole('button', { name: label }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal((await house.say(key, 'Hello')).status, status, label);
  }
  await leave();
});
