// Claude Code, which speaks Messages.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, beforeEach, describe, test } from 'node:test';
import { modules, openHouse, runCLI, skipCLIs } from './harness.mjs';
import { quiet } from './quiet.mjs';

const file = '@anthropic-ai/claude-code-linux-x64/claude'; // what @anthropic-ai/claude-code starts
const absent = !existsSync(modules + file) && 'there is none for this platform';

describe('claude', { skip: skipCLIs || absent }, () => {
  let house;
  before(async () => { house = await openHouse(); });
  after(() => house?.close());
  beforeEach(() => house.upstream.forget());

  const run = (model, prompt) => runCLI(house, {
    file,
    args: ['--bare', '--dangerously-skip-permissions', '-p', prompt, '--output-format', 'stream-json', '--verbose'],
    env: {
      ANTHROPIC_BASE_URL: house.root, ANTHROPIC_API_KEY: house.key, ANTHROPIC_MODEL: model, ANTHROPIC_SMALL_FAST_MODEL: model, ...quiet,
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
});
