// The pages of the console, found as people find them: in the navigation, and by the links on its
// pages. A page that is added is in the list by itself.

// open shows a page and waits until it has all that it asked for.
export async function open(page, at) {
  await page.evaluate((to) => new Promise((resolve) => {
    location.hash = to;
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)));
  }), '#/' + at);
  await settled(page);
}

// settled waits until nothing of a page is still asked for.
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('main h1, main .empty') && !document.querySelector('.loading'));
}

// pagesOf are the addresses of all kinds of pages, one of each: keys/new, and one key for all keys.
export async function pagesOf(page) {
  const kinds = new Map();
  const links = (within) => page.locator(within + ' a[href^="#/"]').evaluateAll((all) => all.map((a) => a.getAttribute('href').slice(2)));
  const todo = await links('nav');
  for (let at; (at = todo.shift()) !== undefined;) {
    const kind = kindOf(at);
    if (kinds.has(kind)) continue;
    kinds.set(kind, at);
    await open(page, at);
    todo.push(...await links('main'));
  }
  return [...kinds.values()];
}

// kindOf is what an address has in common with others: what a thing is called does not count, nor what a page is asked for.
function kindOf(at) {
  const [name, ...rest] = at.split('?')[0].split('/');
  return [name, ...rest.map((part) => (/^[a-z]+$/.test(part) && part === 'new' ? part : '*'))].join('/');
}

// furnish puts one of each into a house, so that all kinds of pages are there.
export async function furnish(house) {
  await house.admin('POST', '/teams', { name: 'research', budgets: ['100/month'] });
  const key = await house.admin('POST', '/keys', { name: 'alice', team: 'research', budgets: ['5/month', '1/day'], limits: { rpm: 600 } });
  await house.admin('POST', '/users', { name: 'ann', role: 'viewer' });
  await house.admin('POST', '/tokens', { name: 'billing', scopes: ['usage'], expires: new Date(Date.now() + 864e5).toISOString() });
  await house.say(key.key, 'Hello');
  await house.say(key.key, 'Hello', 'no such model');
  return key;
}
