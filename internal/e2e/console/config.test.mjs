// The configuration in a browser: a gateway that has none gets a provider, a model and a document
// with versions there, and one that is ruled by a file shows how it stands with it.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { logIn, openHouse, openUpstream } from './harness.mjs';

let house, ruled, vendor;
before(async () => {
  [vendor, house, ruled] = await Promise.all([openUpstream('sk-right'), openHouse(null), openHouse('models: {}\n')]);
});
after(async () => {
  vendor?.close();
  await Promise.all([house?.close(), ruled?.close()]);
});

const at = (page, of, address) => page.goto(`${of.origin}/console/#/${address}`);

test('a gateway without a file gets its first provider, and a model, in the browser', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await page.getByRole('link', { name: 'Add a provider' }).click();
  await page.getByLabel('Vendor').selectOption('');
  await page.getByLabel('Name', { exact: true }).fill('lab');
  await page.getByLabel('Base URL').fill(vendor.url);
  await page.getByLabel('API key').fill('sk-wrong');
  await page.getByText('as curl').last().click();
  assert.doesNotMatch(await page.getByLabel('as curl').last().innerText(), /sk-wrong/);
  await page.getByRole('button', { name: 'Save and test' }).click();
  await page.getByRole('heading', { name: 'It does not work: 401' }).waitFor();
  await page.getByText('The key is not taken.').waitFor();
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByLabel('API key').fill('sk-right');
  assert.equal(await page.getByLabel('Base URL').inputValue(), vendor.url, 'what was typed is lost');
  await page.getByRole('button', { name: 'Save and test' }).click();
  await page.getByRole('heading', { name: 'It works' }).waitFor();
  await page.getByRole('link', { name: 'See the provider' }).click();
  await page.getByRole('heading', { level: 1, name: 'lab' }).waitFor();
  await page.getByText('answers', { exact: true }).waitFor();
  const { source, text } = await house.admin('GET', '/config/document');
  assert.equal(source, 'store');
  assert.match(text, /\$\{secret:/);
  assert.doesNotMatch(text + await page.content(), /sk-right/);

  await at(page, house, 'models?add=any');
  await page.getByLabel('Name', { exact: true }).fill('org/best');
  await page.getByLabel('Target 1', { exact: true }).fill('lab/small');
  await page.getByRole('button', { name: 'Another target' }).click();
  await page.getByLabel('Target 2', { exact: true }).fill('lab/big');
  await page.getByRole('button', { name: 'Target 2 one place up' }).click();
  await page.getByRole('button', { name: 'Make the model' }).click();
  await page.getByRole('heading', { level: 1, name: 'org/best' }).waitFor();
  assert.deepEqual((await house.admin('GET', '/models')).models.find((m) => m.id === 'org/best').targets, ['lab/big', 'lab/small']);
  assert.equal((await house.say(house.key, 'Hello', 'org/best')).status, 200);
  await leave();
});

test('a document is checked, applied with the keyboard alone, and brought back', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await at(page, house, 'config');
  const field = page.getByLabel('The document');
  const before = await field.inputValue();
  const { version } = await house.admin('GET', '/config/document');
  await field.fill(before + 'modles: {}\n');
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('did you mean "models"?').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Apply' }).count(), 0, 'a bad document can be applied');
  await page.getByRole('button', { name: `Line ${before.split('\n').length}` }).click();
  assert.equal(await field.evaluate((f) => f.value.slice(f.selectionStart, f.selectionEnd)), 'modles: {}');

  await page.keyboard.press('Delete');
  await page.keyboard.type('# by hand');
  const tab = async (name) => {
    for (let i = 0; i < 9 && await page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.name) !== name; i++) await page.keyboard.press('Tab');
  };
  await tab('Check');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Apply' }).waitFor();
  assert.match(await page.getByLabel('What applying changes').innerText(), /^\+# by hand$/m);
  await tab('note');
  await page.keyboard.type('as a test');
  await page.keyboard.press('Enter');
  await page.getByText(`Version ${version + 1} is in force.`).waitFor();

  await page.getByRole('link', { name: 'History' }).click();
  await page.getByText('as a test').waitFor();
  await page.getByRole('link', { name: `Version ${version}`, exact: true }).click();
  await page.getByRole('button', { name: 'Bring it back' }).click();
  await page.getByRole('dialog').getByText('-# by hand').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Bring it back' }).click();
  await page.getByRole('link', { name: `Version ${version + 2}`, exact: true }).waitFor();
  assert.equal((await house.admin('GET', '/config/document')).text, before);
  await leave();
});

test('what somebody else saved meanwhile is shown, and what was typed stays', async () => {
  const { page, leave } = await house.visit();
  await logIn(page, house.password);
  await at(page, house, 'config');
  const field = page.getByLabel('The document');
  const { text, version } = await house.admin('GET', '/config/document');
  await field.fill(text + '# mine\n');
  await house.admin('PUT', '/config/document', { text: text + '# theirs\n', base: version, note: 'quick' });
  await page.getByRole('heading', { name: `Version ${version + 1} was saved while you were writing` }).waitFor();
  await page.getByText('+# theirs').waitFor();
  assert.equal(await field.inputValue(), text + '# mine\n');
  await page.getByRole('button', { name: 'Keep mine' }).click();
  await page.getByText('-# theirs').waitFor();
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText(`Version ${version + 2} is in force.`).waitFor();
  assert.equal((await house.admin('GET', '/config/document')).text, text + '# mine\n');
  await leave();
});

test('where a file rules, it is shown with what is wrong with it, and nothing is changed here', async () => {
  const { page, leave } = await ruled.visit();
  await logIn(page, ruled.password);
  await at(page, ruled, 'config');
  await page.getByText(ruled.file).waitFor();
  assert.equal(await page.getByLabel('The file').isEditable(), false);
  assert.equal(await page.getByRole('button', { name: 'Check' }).count(), 0);
  await writeFile(ruled.file, ruled.text + 'modles: {}\n');
  await page.getByRole('heading', { name: 'The file was not taken' }).waitFor();
  await page.getByText('did you mean "models"?').waitFor();
  await writeFile(ruled.file, ruled.text);
  await page.getByRole('heading', { name: 'The file was not taken' }).waitFor({ state: 'detached' });
  await at(page, ruled, 'providers?add=openai');
  assert.match(await page.getByLabel('For the file').innerText(), /^providers:\n {2}openai:\n {4}api_key: "\$\{OPENAI_API_KEY\}"$/m);
  assert.equal(await page.getByLabel('API key').count(), 0);
  await leave();
});
