// The console for everybody: with the keyboard alone, at 360 pixels, in light and in dark, read
// aloud, and without motion. Every page that there is, and every window that its buttons open.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';
import { furnish, open, pagesOf, settled } from './pages.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const levels = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

let house, page, leave, pages;
before(async () => {
  house = await openHouse();
  await furnish(house);
  ({ page, leave } = await house.visit({ reducedMotion: 'reduce', viewport: { width: 1280, height: 800 } }));
  await logIn(page, house.password);
  await page.evaluate(axe); // through the debugger: no page could
  pages = await pagesOf(page);
});
after(async () => {
  await leave?.();
  await house?.close();
});

// found is what axe has to say of what is shown, by rules of some kind.
async function found(runOnly) {
  const { violations } = await page.evaluate((runOnly) => window.axe.run(document, { runOnly, resultTypes: ['violations'] }), runOnly);
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)}: ${n.failureSummary.replaceAll('\n', ' ')}`));
}

test('there are pages', () => {
  for (const at of ['home', 'calls', 'keys/new']) assert.ok(pages.includes(at), at);
  for (const kind of ['keys/', 'calls/req_', 'teams/', 'models/']) assert.ok(pages.some((at) => at.startsWith(kind)), kind);
});

test('every page keeps to WCAG AA, light and dark, wide and narrow', async () => {
  const faults = [];
  for (const at of pages) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await open(page, at);
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        const all = await found(colorScheme === 'light' ? levels : ['color-contrast']); // all else is no matter of colour
        faults.push(...all.map((text) => `${at}, ${colorScheme}, ${width}: ${text}`));
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) faults.push(`${at}, ${width}: scrolls sideways, by ${over} pixels`);
    }
    const moving = await page.evaluate(() => document.getAnimations().length);
    if (moving) faults.push(`${at}: ${moving} animations, though none are wanted`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(faults, []);
});

test('what moves does so only for those who want it', async () => {
  await open(page, 'connect');
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  assert.ok(await page.evaluate(() => document.getAnimations().length) > 0, 'nothing moves at all, so the test says nothing');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
});

// controls are what can be used within a place, by their names; of a group of radio buttons the
// chosen one stands for all.
const controls = (within) => page.locator(within).evaluate((box) => {
  const shown = [...box.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((n) => n.checkVisibility({ visibilityProperty: true })
    && !n.matches(':disabled, [tabindex="-1"]') && !(n.type === 'radio' && !n.checked && document.querySelector(`input[name="${n.name}"]:checked`)));
  shown.forEach((n, i) => { n.dataset.control = String(i); });
  return shown.map((n) => n.outerHTML.replace(/ data-control="\d+"/, '').slice(0, 120));
});

// walk goes through what has the focus next, so many times, and tells what it was and whether that could be seen.
async function walk(times) {
  await page.evaluate(() => {
    window.walked = [];
    window.walking ??= addEventListener('focusin', ({ target }) => {
      const ring = (node) => node && getComputedStyle(node).outlineStyle !== 'none' && parseFloat(getComputedStyle(node).outlineWidth) >= 2;
      const box = target.getBoundingClientRect();
      window.walked.push({ control: target.dataset.control, html: target.outerHTML.slice(0, 120), ring: ring(target) || ring(target.nextElementSibling) || ring(target.parentElement) || ring(target.closest('.editor')) || target.matches('.search input'),
        seen: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth });
    }) ?? true;
  });
  for (let i = 0; i < times; i++) await page.keyboard.press('Tab');
  return page.evaluate(() => window.walked);
}

async function reachable(at, within) {
  const wanted = await controls(within);
  const parts = 4 * wanted.filter((html) => /type="(date|time|month)/.test(html)).length; // a date has a turn for each of its numbers
  const walked = await walk(wanted.length + parts + 2);
  const reached = new Set(walked.map((w) => w.control));
  return [
    ...wanted.filter((_, i) => !reached.has(String(i))).map((html) => `${at}: cannot be reached: ${html}`),
    ...walked.filter((w) => !w.ring).map((w) => `${at}: has no visible focus: ${w.html}`),
    ...walked.filter((w) => !w.seen).map((w) => `${at}: has the focus and is out of sight: ${w.html}`),
  ];
}

const dialog = () => page.evaluate(() => document.querySelector('dialog[open]')?.getAttribute('aria-label') ?? null);

test('every control of every page has its turn, and shows it', async () => {
  const faults = [];
  for (const at of pages) {
    await open(page, at);
    if (await dialog()) {
      faults.push(...await reachable(at, 'dialog[open]'));
      await page.keyboard.press('Escape');
      await page.waitForFunction(() => !document.querySelector('dialog'));
      continue;
    }
    await page.evaluate(() => document.activeElement?.blur());
    await page.evaluate(() => document.querySelector('.skip').focus());
    if (at === 'home') {
      faults.push(...await reachable(at, '.side'));
      await page.evaluate(() => document.querySelector('.skip').focus());
    }
    await page.keyboard.press('Enter');
    if (await page.evaluate(() => document.activeElement?.id) !== 'main') faults.push(`${at}: the skip link does not lead to the content`);
    faults.push(...await reachable(at, 'main'));
    const last = await page.evaluate(() => document.activeElement === document.body);
    if (!last) await page.evaluate(() => document.activeElement.blur());
    await page.locator('.brand').focus();
    await page.keyboard.press('/');
    await page.getByRole('dialog', { name: 'Search' }).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog'));
    if (!await page.evaluate(() => document.activeElement.matches('.brand'))) faults.push(`${at}: the search does not give the focus back`);
  }
  assert.deepEqual(faults, []);
});

test('windows take the focus, close by Escape and give it back', async () => {
  const faults = [], met = new Set();
  for (const at of pages) {
    await open(page, at);
    const names = await page.locator('main button[type=button]:not([aria-pressed]):visible:enabled').evaluateAll((all) => [...new Set(all.filter((b) => !b.closest('.code')).map((b) => b.textContent.trim()))]);
    for (const name of names) {
      const here = await page.evaluate(() => location.hash);
      const button = page.getByRole('main').getByRole('button', { name, exact: true }).first();
      if (await dialog() || !await button.isVisible()) break;
      await button.focus();
      await page.keyboard.press('Enter');
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))));
      const title = await dialog();
      if (title !== null) {
        await settled(page);
        if (!await page.evaluate(() => document.activeElement.closest('dialog'))) faults.push(`${at}: “${title}” does not take the focus`);
        if (!met.has(title)) {
          faults.push(...(await found(levels)).map((text) => `${at}, “${title}”: ${text}`));
          faults.push(...await reachable(`${at}, “${title}”`, 'dialog[open]'));
        }
        met.add(title);
        await page.keyboard.press('Escape');
        await page.waitForFunction(() => !document.querySelector('dialog'));
        if (!await page.evaluate((name) => document.activeElement.textContent.trim() === name, name)) faults.push(`${at}: “${title}” does not give the focus back`);
      }
      if (await page.locator('.login').count()) await logIn(page, house.password);
      if (await page.evaluate(() => location.hash) !== here) await open(page, at);
    }
  }
  assert.ok(met.size >= 4, `only these opened: ${[...met].join(', ')}`);
  assert.deepEqual(faults, []);
});
