// Codex, which speaks Responses.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { cutOnce, openHouse, runCLI, skipCLIs } from './harness.mjs';

// overHTTP and overSocket say where a provider is and what it can; overBase moves Codex's own,
// which it asks over a socket.
const overHTTP = (baseURL) => `
model_provider = "gw"
[model_providers.gw]
name = "Gw"
base_url = "${baseURL}"
env_key = "GW_API_KEY"
wire_api = "responses"
`;
const overSocket = (baseURL) => overHTTP(baseURL) + 'supports_websockets = true\n';
const overBase = (baseURL) => `
openai_base_url = "${baseURL}"
`;
const config = (model, provider) => `
model = "${model}"
approval_policy = "never"
sandbox_mode = "danger-full-access"
${provider}
[analytics]
enabled = false
`;

// tapped passes on what clients say to a gateway, and tells the requests in it.
async function tapped(baseURL) {
  const { port, hostname, pathname } = new URL(baseURL);
  const said = [];
  const server = net.createServer((client) => {
    const at = said.push('') - 1;
    client.on('data', (b) => { said[at] += b.toString('latin1'); });
    const gateway = net.connect(port, hostname);
    client.pipe(gateway).pipe(client);
    for (const s of [client, gateway]) s.on('error', () => { client.destroy(); gateway.destroy(); });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseURL: `http://127.0.0.1:${server.address().port}${pathname}`,
    close: () => server.close(),
    requests: () => said.flatMap((s) => s.match(/^(GET|POST) \S+(?= HTTP\/1\.1\r$)/gm) ?? []),
  };
}

describe('codex', { skip: skipCLIs }, () => {
  let house;
  before(async () => { house = await openHouse(); });
  after(() => house?.close());
  beforeEach(() => house.upstream.forget());

  const run = (model, prompt, provider = overHTTP(house.baseURL)) => runCLI(house, {
    file: '.bin/codex',
    args: ['exec', '--skip-git-repo-check', '--json', prompt],
    env: { CODEX_API_KEY: house.key }, // for its own provider
    prepare: async (home) => {
      await mkdir(path.join(home, '.codex'));
      await writeFile(path.join(home, '.codex', 'config.toml'), config(model, provider));
    },
  });
  const items = (turn, type) => turn.events.filter((e) => e.type === 'item.completed' && e.item.type === type).map((e) => e.item);
  const done = (turn) => assert.equal(turn.code, 0, turn.stdout + turn.stderr);

  test('a plain turn', async () => {
    const turn = await run('plain', 'Say hello.');
    done(turn);
    assert.deepEqual(items(turn, 'agent_message').map((i) => i.text), ['Hello from small.']);
    assert.equal((await house.upstream.requests()).length, 1);
  });

  for (const [model, path] of [
    ['fast', '/v1/responses'], ['to-chat', '/v1/chat/completions'], ['to-anthropic', '/v1/messages'],
    ['to-gemini', '/v1beta/models/gemini-3.5-flash:streamGenerateContent'],
  ]) {
    test(`a tool call by way of ${path}`, async () => {
      const turn = await run(model, 'call exec_command {"cmd":"echo limen-e2e"}');
      const requests = await house.upstream.requests();
      assert.deepEqual(requests.map((r) => r.refused).filter(Boolean), []);
      done(turn);
      const [command] = items(turn, 'command_execution');
      assert.equal(command?.exit_code, 0, turn.stdout);
      assert.equal(command.aggregated_output.trim(), 'limen-e2e');
      assert.match(items(turn, 'agent_message').at(-1).text, /^The tool said: /);
      assert.deepEqual(requests.map((r) => r.path), [path, path]);
    });
  }

  const commands = ['mkdir made', 'printf one- > made/a.txt', 'printf two >> made/a.txt', 'cat made/a.txt'];
  const task = commands.map((cmd) => `call exec_command ${JSON.stringify({ cmd })}`).join(' then ');
  const socket = ['GET /v1/responses']; // the handshake, and no other request
  for (const [name, provider, wanted] of [
    ['HTTP', overHTTP, Array(5).fill('POST /v1/responses')],
    ['a socket', overSocket, socket],
    ['a socket of its own provider', overBase, socket],
  ]) {
    for (const [model, path] of [['to-chat', '/v1/chat/completions'], ['to-anthropic', '/v1/messages']]) {
      test(`a file in several turns, over ${name}, by way of ${path}`, async () => {
        const tap = await tapped(house.baseURL);
        try {
          const turn = await run(model, task, provider(tap.baseURL));
          const requests = await house.upstream.requests();
          assert.deepEqual(requests.map((r) => r.refused).filter(Boolean), []);
          done(turn);
          const ran = items(turn, 'command_execution');
          assert.deepEqual(ran.map((c) => c.exit_code), commands.map(() => 0), turn.stdout);
          assert.equal(ran.at(-1).aggregated_output, 'one-two');
          assert.match(items(turn, 'agent_message').at(-1).text, /^The tool said: /);
          assert.deepEqual(requests.map((r) => r.path), Array(5).fill(path));
          for (const cmd of commands) assert.equal(requests.at(-1).body.split(cmd).length, 3, cmd); // in the task and in the call
          assert.deepEqual(tap.requests().filter((r) => r.includes('/v1/responses')), wanted);
          const calls = (await house.calls()).filter((c) => c.model === model).slice(0, 5);
          assert.deepEqual(calls.map((c) => [c.operation, c.status]), Array(5).fill(['responses', 200]));
        } finally {
          tap.close();
        }
      });
    }
  }

  test('a socket: a stream cut once is asked for again', async () => {
    const [turn] = await Promise.all([run('plain', 'Say hello.', overSocket(house.baseURL)), cutOnce(house)]);
    done(turn);
    assert.equal(items(turn, 'agent_message').at(-1).text, 'Hello from small.');
  });

  test('a socket: what the upstream always fails at ends the turn with the reason', async () => {
    const turn = await run('plain', '[[fault:status-400]] Say hello.', overSocket(house.baseURL));
    assert.equal(turn.code, 1);
    assert.ok(turn.events.find((e) => e.type === 'turn.failed')?.error.message, turn.stdout);
    const n = (await house.upstream.requests()).length;
    assert.ok(n <= 2, `${n} requests`);
  });

  test('a stream cut once is asked for again', async () => {
    const [turn] = await Promise.all([run('plain', 'Say hello.'), cutOnce(house)]);
    done(turn);
    assert.equal(items(turn, 'agent_message').at(-1).text, 'Hello from small.');
    const faults = (await house.upstream.requests()).map((r) => r.fault);
    assert.equal(faults[0], 'cut');
    assert.equal(faults.at(-1), '');
    assert.ok(turn.events.some((e) => e.type === 'error' && /ended before the answer was complete/.test(e.message)), turn.stdout);
  });

  test('a stream cut always ends the turn with the reason', async () => {
    const turn = await run('plain', '[[fault:cut]] Say hello.');
    assert.equal(turn.code, 1);
    assert.match(turn.events.find((e) => e.type === 'turn.failed')?.error.message ?? turn.stdout, /ended before the answer was complete/);
    const n = (await house.upstream.requests()).length;
    assert.ok(n <= 6, `${n} requests`); // the first and Codex's five more, with pauses
  });
});
