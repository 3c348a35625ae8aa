// Claude Code, which speaks Messages.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openHouse, runCLI, skipCLIs } from './harness.mjs';

const file = '@anthropic-ai/claude-code-linux-x64/claude'; // what @anthropic-ai/claude-code starts
const absent = !existsSync(fileURLToPath(new URL(`node_modules/${file}`, import.meta.url))) && 'there is none for this platform';

describe('claude', { skip: skipCLIs || absent }, () => {
  let house;
  before(async () => { house = await openHouse(); });
  after(() => house?.close());
  beforeEach(() => house.upstream.forget());

  const run = (model, prompt) => runCLI(house, {
    file,
    args: ['--bare', '--dangerously-skip-permissions', '-p', prompt, '--output-format', 'stream-json', '--verbose'],
    env: {
      ANTHROPIC_BASE_URL: house.root, ANTHROPIC_API_KEY: house.key, ANTHROPIC_MODEL: model, ANTHROPIC_SMALL_FAST_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1',
      CLAUDE_CODE_MAX_RETRIES: '1', IS_SANDBOX: '1',
    },
    prepare: () => {},
  });

  for (const [model, path] of [
    ['to-chat', '/v1/chat/completions'], ['to-responses', '/v1/responses'], ['to-anthropic', '/v1/messages'],
    ['to-gemini', '/v1beta/models/gemini-3.5-flash:streamGenerateContent'],
  ]) {
    test(`a tool call by way of ${path}`, async () => {
      const turn = await run(model, 'call Bash {"command":"echo limen-e2e","description":"echo"}');
      const requests = await house.upstream.requests();
      assert.deepEqual(requests.map((r) => r.refused).filter(Boolean), []);
      assert.equal(turn.code, 0, turn.stdout + turn.stderr);
      const output = turn.events.filter((e) => e.type === 'user').flatMap((e) => e.message.content).find((b) => b.type === 'tool_result');
      assert.equal(output?.content, 'limen-e2e', turn.stdout);
      assert.match(turn.events.at(-1).result, /^The tool said: limen-e2e/);
      assert.ok(requests.every((r) => r.path === path), turn.stdout);
    });
  }

  test('with the settings that limen connect wrote', async () => {
    const others = (await house.calls()).length; // of the tests before
    const turn = await runCLI(house, {
      file,
      args: ['--dangerously-skip-permissions', '-p', 'Say hello.', '--output-format', 'stream-json', '--verbose'],
      env: {
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1',
        CLAUDE_CODE_MAX_RETRIES: '1', IS_SANDBOX: '1',
      },
      prepare: async (home) => {
        await house.connect(home, 'claude', 'plain');
        await house.upstream.forget(); // the checks of connect
      },
    });
    assert.equal(turn.code, 0, turn.stdout + turn.stderr);
    assert.equal(turn.events.at(-1).result, 'Hello from small.', turn.stdout);
    const calls = (await house.calls()).slice(0, -others || undefined).filter((c) => c.operation === 'messages'); // newest first
    assert.ok(calls.length > 0 && calls.every((c) => c.model === 'plain' && c.status === 200), JSON.stringify(calls));
  });
});
