// opencode, which speaks either operation, by the AI SDK's provider that it is told to use.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { cutOnce, openHouse, runCLI, skipCLIs, until } from './harness.mjs';
import { quiet } from './quiet.mjs';

const model = { tool_call: true, limit: { context: 128_000, output: 4_096 } };
const config = (npm, name, baseURL) => ({
  model: `gw/${name}`,
  small_model: 'gw/plain',
  permission: { '*': 'allow' },
  provider: { gw: { npm, options: { baseURL, apiKey: '{env:GW_API_KEY}' }, models: { plain: model, fast: model } } },
});

for (const [operation, npm] of [['/v1/chat/completions', '@ai-sdk/openai-compatible'], ['/v1/responses', '@ai-sdk/openai']]) {
  describe(`opencode with ${npm}`, { skip: skipCLIs }, () => {
    let house;
    before(async () => { house = await openHouse(); });
    after(() => house?.close());
    beforeEach(() => house.upstream.forget());

    const run = (name, prompt, enough) => runCLI(house, {
      file: 'opencode-linux-x64/bin/opencode', // what opencode-ai starts
      args: ['run', '--format', 'json', ...prompt.split(' ')], // it puts quotes around an argument with a space
      env: quiet,
      prepare: (_, work) => writeFile(path.join(work, 'opencode.json'), JSON.stringify(config(npm, name, house.baseURL))),
      enough,
    });
    const texts = (turn) => turn.events.filter((e) => e.type === 'text').map((e) => e.part.text);
    const done = (turn) => assert.equal(turn.code, 0, turn.stdout + turn.stderr);
    // isTurn tells the turn's own requests from the one for a title, which is short and comes beside them.
    const isTurn = (request) => request.body.length > 5_000;
    const asked = async () => {
      const turns = (await house.upstream.requests()).filter(isTurn);
      for (const r of turns) assert.equal(r.path, operation);
      return turns;
    };

    test('a plain turn', async () => {
      const turn = await run('plain', 'Say hello.');
      done(turn);
      assert.deepEqual(texts(turn), ['Hello from small.']);
      assert.equal((await asked()).length, 1);
    });

    test('a tool call', async () => {
      const turn = await run('fast', String.raw`call bash {"command":"echo\u0020limen-e2e","description":"echo"}`);
      done(turn);
      const [tool] = turn.events.filter((e) => e.type === 'tool_use').map((e) => e.part);
      assert.equal(tool?.state.status, 'completed', turn.stdout);
      assert.equal(tool.state.output.trim(), 'limen-e2e');
      assert.match(texts(turn).at(-1), /^The tool said: limen-e2e/);
      assert.equal((await asked()).length, 2);
    });

    test('a stream cut once is asked for again', async () => {
      const [turn] = await Promise.all([run('plain', 'Say hello.'), cutOnce(house, isTurn)]);
      done(turn);
      assert.equal(texts(turn).at(-1), 'Hello from small.');
      const faults = (await asked()).map((r) => r.fault);
      assert.equal(faults[0], 'cut');
      assert.equal(faults.at(-1), '');
    });

    test('a stream cut always is asked for with pauses', async () => {
      const window = 10_000;
      const enough = until('a request', async () => (await asked()).length > 0, 50_000).then(() => pause(window));
      await Promise.all([run('plain', '[[fault:cut]] Say hello.', enough), enough]);
      const n = (await asked()).length;
      assert.ok(n > 1 && n <= 4, `${n} requests in ${window} ms`);
    });
  });
}
