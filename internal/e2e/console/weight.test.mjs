// What a page weighs, how soon it is seen, and that it stands still then.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { logIn, openHouse } from './harness.mjs';
import { furnish, pagesOf, settled } from './pages.mjs';

const most = 150_000; // bytes of a page's files, unpacked
const soon = 1000; // ms until something is seen, on a machine that is busy with other things; 200 is what is wanted

let house, page, leave;
before(async () => {
  house = await openHouse();
  await furnish(house);
  ({ page, leave } = await house.visit());
  await page.addInitScript(() => { // through the debugger: no page could
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const s of list.getEntries()) {
        if (!s.hadRecentInput) window.shifts.push({ by: s.value, what: s.sources.map((x) => x.node?.outerHTML?.slice(0, 80) ?? x.node?.nodeName) });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await logIn(page, house.password);
});
after(async () => {
  await leave?.(); // fails if anything was asked of another host
  await house?.close();
});

// visit opens a page as from a bookmark, and waits for all that it fetches.
async function visit(at) {
  await page.goto(`${house.origin}/console/?${Math.random()}#/${at}`);
  await settled(page);
  await page.waitForFunction(() => !document.querySelector('.chart') || document.querySelector('.chart canvas')); // its library comes last
  await page.waitForFunction(() => [...document.querySelectorAll('script[src], link[rel=stylesheet], link[rel=modulepreload]')].every((n) => performance.getEntriesByName(n.src || n.href).some((e) => e.responseEnd > 0)));
}

/** The files of a page, without what the API said. */
const files = () => page.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .map((e) => ({ path: new URL(e.name).pathname, plain: e.decodedBodySize, sent: e.encodedBodySize })).filter((e) => e.path.startsWith('/console/')));

const median = (all) => all.toSorted((a, b) => a - b)[all.length >> 1];

test('no page is heavy, and what is shown stays where it is', async (t) => {
  const faults = [], folder = /^\/console\/[0-9a-f]{16}\//;
  for (const at of await pagesOf(page)) {
    await visit(at);
    const all = new Map((await files()).map((f) => [f.path.replace(folder, ''), f]));
    assert.ok(all.size > 10, `${at}: only ${[...all.keys()]}`);
    if (at === 'usage') assert.ok(all.has('lib/uPlot.iife.min.js'), 'the chart is not weighed');
    const [plain, sent] = ['plain', 'sent'].map((kind) => [...all.values()].reduce((sum, f) => sum + f[kind], 0));
    const shifts = await page.evaluate(() => window.shifts);
    const shifted = shifts.reduce((sum, s) => sum + s.by, 0);
    t.diagnostic(`${at.split('?')[0].padEnd(40)} ${plain} bytes, ${sent} as sent, ${all.size} files, shifts ${shifted.toFixed(3)}`);
    if (plain > most) faults.push(`${at}: ${plain} bytes`);
    if (sent > plain) faults.push(`${at}: ${sent} bytes are sent for ${plain}`);
    if (shifted > 0.1) faults.push(`${at}: shifts by ${shifted.toFixed(3)}: ${JSON.stringify(shifts.slice(0, 4))}`);
  }
  assert.deepEqual(faults, []);
});

test('the first paint comes soon', async (t) => {
  const times = { 'first-paint': [], 'first-contentful-paint': [], whole: [] };
  for (let i = 0; i < 9; i++) {
    const fresh = await page.context().browser().newContext({ storageState: await page.context().storageState() }); // nothing is cached
    const other = await fresh.newPage();
    await other.goto(house.origin + '/console/#/home');
    await settled(other);
    for (const e of await other.evaluate(() => performance.getEntriesByType('paint').map((e) => [e.name, e.startTime]))) times[e[0]].push(e[1]);
    times.whole.push(await other.evaluate(() => performance.now()));
    await fresh.close();
  }
  for (const [name, all] of Object.entries(times)) t.diagnostic(`${name}: median ${Math.round(median(all))} ms of ${all.map(Math.round)}`);
  const seen = median(times['first-contentful-paint']);
  assert.ok(seen < soon, `the first paint of something comes after ${Math.round(seen)} ms`);
});
