// Codex, which speaks Responses.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { cutOnce, openHouse, runCLI, skipCLIs } from './harness.mjs';

const config = (model, baseURL) => `
model = "${model}"
model_provider = "gw"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.gw]
name = "Gw"
base_url = "${baseURL}"
env_key = "GW_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
`;

describe('codex', { skip: skipCLIs }, () => {
  let house;
  before(async () => { house = await openHouse(); });
  after(() => house?.close());
  beforeEach(() => house.upstream.forget());

  const run = (model, prompt) => runCLI(house, {
    file: '.bin/codex',
    args: ['exec', '--skip-git-repo-check', '--json', prompt],
    prepare: async (home) => {
      await mkdir(path.join(home, '.codex'));
      await writeFile(path.join(home, '.codex', 'config.toml'), config(model, house.baseURL));
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
