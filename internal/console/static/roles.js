// What people may do, in words.

/** @type {Record<string, {say: string, tone: 'good'|'warn'|'plain'}>} */
export const roles = {
  owner: { say: 'May do everything, also say who may use the console.', tone: 'warn' },
  admin: { say: 'Sees everything; makes and changes keys, teams, the configuration and prices, but no users and no tokens.', tone: 'good' },
  viewer: { say: 'Sees everything, changes nothing.', tone: 'plain' },
  member: { say: 'Sees the keys, budgets, usage and calls of one team and of those below it, changes nothing.', tone: 'plain' },
};

/** @type {Record<string, {say: string, ask: string}>} what each scope of a token is for, and something to ask with it */
export const scopes = {
  read: { say: 'sees everything', ask: '/status' },
  keys: { say: 'sees and changes keys and teams', ask: '/keys' },
  config: { say: 'sees and changes the configuration, models and prices', ask: '/models' },
  usage: { say: 'sees usage and calls', ask: '/usage' },
};
