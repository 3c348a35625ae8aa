// The description of the admin API: it is OpenAPI, and it is true.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openHouse } from './harness.mjs';

// An upstream with a model that has a known price, and one that has none.
const upstream = createServer((request, answer) => {
  answer.setHeader('Content-Type', 'application/json');
  request.resume().on('end', () => answer.end(JSON.stringify(request.url.endsWith('/models')
    ? { object: 'list', data: [{ id: 'gpt-5', object: 'model' }, { id: 'brand-new', object: 'model' }] }
    : {
        id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-5', usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
        choices: [{ index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant', content: 'Hi', refusal: null } }],
      })));
});

const config = (port) => `providers:
  openai: { api_key: "\${secret:openai}", base_url: "http://127.0.0.1:${port}/v1" }
  gone: { base_url: "http://127.0.0.1:1/v1" }
models:
  priced:
    targets: [openai/gpt-5, gone/gpt-5]
    price: { input: 1.5, output: 3, tiers: [{ over: 200000, input: 3, output: 6 }], search: 0.01, from: 2026-01-01 }
`;

let house, doc, ajv;
before(async () => {
  await new Promise((done) => upstream.listen(0, '127.0.0.1', done));
  house = await openHouse(null);
  doc = await house.admin('GET', '/openapi.json');
  ajv = new Ajv({ strict: false, allErrors: true });
  addFormats(ajv);
  // What an answer has beyond its schema was forgotten there.
  for (const schema of Object.values(doc.components.schemas)) if (schema.properties) schema.additionalProperties ??= false;
  ajv.addSchema(doc, 'api');
});
after(async () => {
  await house?.close();
  upstream.closeAllConnections();
  upstream.close();
});

test('the description is OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(doc));
  assert.ok(valid, JSON.stringify(errors, null, 2));
  assert.equal(doc.openapi, '3.1.0');
  const ids = Object.values(doc.paths).flatMap((methods) => Object.values(methods).map((op) => op.operationId));
  assert.equal(new Set(ids).size, ids.length, 'operations share an ID');
});

const escaped = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

// fits fails where a value is not as a schema says, which stands at a place of the document.
function fits(value, place, what) {
  const ref = 'api#/' + place.map((step) => encodeURIComponent(escaped(step))).join('/');
  const validate = ajv.getSchema(ref) ?? ajv.compile({ $ref: ref });
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value, null, 1)?.slice(0, 2000)}`);
}

const seen = new Set();

// ask makes a request that is as the description says, and has an answer that is.
async function ask(method, path, { in: names = {}, query = '', body, cookie, status = 200 } = {}) {
  const what = `${method} ${path}${query}`;
  const op = doc.paths[path]?.[method.toLowerCase()];
  assert.ok(op, `${what} is not described`);
  const at = ['paths', path, method.toLowerCase()];
  if (body && status === 200) fits(body, [...at, 'requestBody', 'content', 'application/json', 'schema'], what + ' is sent');
  for (const [name, value] of new URLSearchParams(query)) {
    const i = op.parameters.findIndex((p) => p.name === name && p.in === 'query');
    assert.ok(i >= 0, `${what}: ${name} is not described`);
    const { type } = op.parameters[i].schema;
    const sent = type === 'array' ? value.split(',') : type === 'string' ? value : JSON.parse(value);
    fits(sent, [...at, 'parameters', String(i), 'schema'], `${what}: ${name}`);
  }
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    assert.ok(names[name], `${what}: what is {${name}}?`);
    return encodeURIComponent(names[name]);
  });
  const answer = await fetch(house.origin + '/api/v1' + filled + query, {
    method, headers: { 'Content-Type': 'application/json', ...(cookie ? { Cookie: cookie } : { Authorization: 'Bearer ' + house.password }) }, body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  assert.equal(answer.status, status, `${what}: ${text}`);
  const kind = answer.headers.get('content-type').split(';')[0];
  if (status !== 200) {
    fits(JSON.parse(text), ['components', 'schemas', 'Failure'], what);
    return null;
  }
  assert.ok(op.responses[status].content[kind], `${what} answers with ${kind}`);
  seen.add(`${method} ${path}`);
  if (kind !== 'application/json') return text;
  const value = JSON.parse(text);
  fits(value, [...at, 'responses', '200', 'content', kind, 'schema'], what);
  return value;
}

// login is the cookie of a session.
async function login(user, password) {
  const answer = await fetch(house.origin + '/api/v1/session', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ user, password }),
  });
  assert.equal(answer.status, 200);
  return answer.headers.get('set-cookie').split(';')[0];
}

test('requests and answers are as they are described', async () => {
  const text = config(upstream.address().port);
  await ask('PUT', '/config/secrets/{name}', { in: { name: 'openai' }, body: { value: 'secret' } });
  await ask('PUT', '/config/secrets/{name}', { in: { name: 'unused' }, body: { value: 'secret' } });
  await ask('DELETE', '/config/secrets/{name}', { in: { name: 'unused' } });
  await ask('POST', '/config/check', { body: { text: text + 'prices: { unknow: refuse }\n' } });
  await ask('PUT', '/config/document', { body: { text, base: 0, note: 'a vendor' } });
  await ask('PUT', '/config/document', { body: { text, base: 0 }, status: 409 });
  await ask('PUT', '/config/providers/{name}', { in: { name: 'lab' }, body: { provider: { base_url: 'http://127.0.0.1:1/v1' }, api_key: 'another' } });
  await ask('DELETE', '/config/providers/{name}', { in: { name: 'lab' } });
  await ask('PUT', '/config/models/{id}', { in: { id: 'a/b' }, body: { model: { targets: ['openai/gpt-5'] } } });
  await ask('DELETE', '/config/models/{id}', { in: { id: 'a/b' } });
  await ask('POST', '/config/rollback', { body: { version: 1, base: 5 } });
  await ask('GET', '/config/versions/{version}', { in: { version: '1' } });
  await ask('POST', '/providers/{provider}/test', { in: { provider: 'openai' }, body: { model: 'gpt-5' } });
  await ask('POST', '/providers/{provider}/test', { in: { provider: 'gone' }, body: { model: 'gpt-5' } });
  await ask('POST', '/teams', { body: { name: 'staff', budgets: ['100/month'] } });
  await ask('POST', '/teams', { body: { name: 'red', parent: 'staff', budgets: [{ amount: 5, period: 'week', zone: 'Europe/Berlin', soft: true }], limits: { rpm: 600 } } });
  await ask('PATCH', '/teams/{team}', { in: { team: 'red' }, body: { limits: { tpm: 100000 } } });
  const key = await ask('POST', '/keys', { body: { name: 'alice', team: 'red', owner: 'Alice', budgets: ['5/month', '1/day'], limits: { concurrency: 9 }, models: ['*'], operations: ['chat'], expires: '2099-01-01T00:00:00Z' } });
  await ask('PATCH', '/keys/{key}', { in: { key: 'alice' }, body: { owner: 'A', budgets: [{ amount: 7.5, period: 'total' }], limits: null, expires: null, operations: null } });
  for (const bad of [{ spent: 1 }, { limits: { rpm: 1, rps: 1 } }, { budgets: [{ amount: 1, period: 'year' }] }]) {
    assert.throws(() => fits(bad, ['components', 'schemas', 'KeyChange'], 'a change'));
    await ask('PATCH', '/keys/{key}', { in: { key: 'alice' }, body: bad, status: 400 });
  }
  const old = await ask('POST', '/keys', { body: { name: 'old' } });
  await ask('POST', '/keys/{key}/rotate', { in: { key: old.id }, body: { overlap: '1h' } });
  await ask('POST', '/keys/{key}/revoke', { in: { key: old.id } });
  await ask('POST', '/keys/{key}/restore', { in: { key: old.id } });
  await ask('POST', '/keys/{key}/revoke', { in: { key: old.id } });
  await ask('GET', '/keys/{key}', { in: { key: 'nobody' }, status: 404 });

  for (const [model, tags] of [['priced', 'project=blue'], ['openai/brand-new', ''], ['priced', ''], ['none', '']]) {
    const answer = await fetch(house.base + '/chat/completions', {
      method: 'POST', headers: { Authorization: 'Bearer ' + key.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], metadata: tags ? { project: 'blue' } : undefined }),
    });
    await answer.text();
  }
  const { calls } = await ask('GET', '/calls', { query: '?limit=2&key=alice' });
  assert.equal(calls.length, 2);
  await ask('GET', '/calls', { query: '?failed=true&since=2020-01-01&status=404&cost_min=0' });
  await ask('GET', '/usage', { query: '?by=key,model,day,team,tag&zone=Europe/Berlin' });
  await ask('GET', '/usage/export', { query: '?format=csv' });
  const lines = (await ask('GET', '/usage/export', { query: '?key=alice' })).trim().split('\n');
  assert.equal(lines.length, 4);
  for (const line of lines) fits(JSON.parse(line), ['components', 'schemas', 'Call'], 'a line of the export');
  await ask('POST', '/prices/reprice', { body: { since: '2020-01-01', dry_run: true } });
  await ask('POST', '/route', { body: { model: 'priced', key: 'alice', body: { model: 'priced', messages: [{ role: 'user', content: 'Hello' }] } } });
  await ask('POST', '/config/reload');
  await ask('POST', '/config/check', { body: { text: 'lisen: a' } });
  await ask('POST', '/refresh', { body: { undo: true } });

  const user = await ask('POST', '/users', { body: { name: 'bob', role: 'member', team: 'red' } });
  await ask('PATCH', '/users/{user}', { in: { user: 'bob' }, body: { role: 'viewer' } });
  await ask('POST', '/session', { body: { user: 'bob', password: user.password } });
  const cookie = await login('bob', user.password);
  await ask('POST', '/session/password', { cookie, body: { old: user.password, new: 'another password' } });
  await ask('DELETE', '/session', { cookie: await login('bob', 'another password') });
  await login('bob', 'another password');
  const token = await ask('POST', '/tokens', { body: { name: 'ci', scopes: ['read', 'usage'], expires: '2099-01-01T00:00:00Z' } });
  const { sessions } = await ask('GET', '/sessions');

  // Every other operation that only tells.
  const names = { key: 'alice', team: 'red', call: calls[0].request_id, version: '2' };
  const queries = { '/clients': '?model=priced' };
  for (const [path, methods] of Object.entries(doc.paths)) {
    if (methods.get?.responses[200] && !path.includes('{version}')) await ask('GET', path, { in: names, query: queries[path] });
  }

  await ask('DELETE', '/sessions/{session}', { in: { session: sessions[0].id } });
  await ask('DELETE', '/tokens/{token}', { in: { token: token.id } });
  await ask('DELETE', '/users/{user}', { in: { user: 'bob' } });
  await ask('DELETE', '/teams/{team}', { in: { team: 'staff' }, status: 409 });
  await ask('POST', '/teams', { body: { name: 'nobody' } });
  await ask('DELETE', '/teams/{team}', { in: { team: 'nobody' } });
  await ask('POST', '/admin/password', { body: { password: house.password } });

  const described = Object.entries(doc.paths).flatMap(([path, methods]) => Object.entries(methods).filter(([, op]) => op.responses[200]).map(([method]) => `${method.toUpperCase()} ${path}`));
  const left = described.filter((op) => !seen.has(op));
  assert.deepEqual(left.sort(), ['POST /prices/diff'], 'these were never asked'); // it takes facts as they are packed
});
