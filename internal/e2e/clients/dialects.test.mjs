// Every client over every dialect that an upstream may speak. The fake upstream refuses what
// the vendor would, thinking that comes back changed too, so that a wrong translation shows
// as an error.

import assert from 'node:assert/strict';
import { after, beforeEach, describe, test as within } from 'node:test';
import { openHouse, until, upstreams } from './harness.mjs';
import { clientsOf } from './dialects.mjs';

const house = await openHouse();
after(() => house.close());
beforeEach(() => house.upstream.forget());

const clients = clientsOf(house);
const test = (name, run) => within(name, { timeout: 20_000 }, run);

// shown is how many frames an upstream sends until some text has come. Gemini's models think
// unasked.
const shown = { chat: 3, responses: 6, anthropic: 4, gemini: 5, bedrock: 3 };

// expectGood is that the upstream took what it got, as its vendor would have.
async function expectGood(requests) {
  const made = await house.upstream.requests();
  assert.deepEqual(made.map((r) => r.refused).filter(Boolean), []);
  assert.equal(made.length, requests);
  return made;
}

// withHint tells what the upstream refused, where a client saw an error alone.
async function withHint(call) {
  try {
    return await call;
  } catch (err) {
    const refused = (await house.upstream.requests()).filter((r) => r.refused).map((r) => `${r.refused}\n${r.body}`);
    throw refused.length ? new Error(`${err.message}\nthe upstream refused: ${refused.join('\n')}`, { cause: err }) : err;
  }
}

for (const [name, { model: upstreamModel }] of Object.entries(upstreams)) {
  const model = `to-${name}`;
  const hello = `Hello from ${upstreamModel}.`;

  for (const client of clients) {
    describe(`${client.name} to ${name}`, { timeout: 60_000 }, () => {
      for (const stream of [false, true]) {
        const way = stream ? 'stream' : 'whole';

        test(`${way}: text`, async () => {
          const got = await withHint(client.text(model, 'Say hello, cached.', { stream }));
          assert.equal(got.text, hello);
          const [{ body }] = await expectGood(1);
          const input = Math.floor(Buffer.byteLength(body) / 4) + 1;
          if (got.usage) assert.deepEqual(got.usage, { input, cached: Math.floor(input / 4) });
          if (stream) assert.ok(got.pieces > 1, `${got.pieces} pieces`);
        });

        for (const [what, order, n] of [['a tool', 'call', 1], ['parallel tools', 'call2', 2]]) {
          test(`${way}: ${what}`, async () => {
            const got = await withHint(client.loop(model, `${order} weather {"city":"Oslo"}`, { stream }));
            assert.deepEqual(got.calls, Array(n).fill(['weather', { city: 'Oslo' }]));
            assert.equal(got.text, 'The tool said: sunny in Oslo');
            await expectGood(2);
          });
        }

        if (!client.quiet) {
          test(`${way}: thinking`, async () => {
            const got = await withHint(client.text(model, 'Say hello.', { stream, think: true }));
            // The AI SDK shows summaries alone; a chat server's reasoning is none.
            if (!(client.summaries && name === 'chat')) assert.equal(got.thought, 'Let me think.');
            assert.equal(got.text, hello);
            await expectGood(1);
          });

          test(`${way}: thinking before a tool`, async () => {
            const got = await withHint(client.loop(model, 'call weather {"city":"Oslo"}', { stream, think: true }));
            assert.equal(got.text, 'The tool said: sunny in Oslo');
            await expectGood(2);
          });
        }

        test(`${way}: the rate limit`, async () => {
          await assert.rejects(client.text(model, '[[fault:status-429]] Hi', { stream }), (err) => {
            assert.equal(client.status(err), 429, `${err?.constructor?.name}: ${err}`);
            assert.doesNotMatch(String(err.message), /upstream-secret/);
            return true;
          });
        });
      }

      test('an answer by a schema', async () => {
        const got = await withHint(client.text(model, 'Where?', { schema: true }));
        assert.deepEqual(JSON.parse(got.text), { celsius: 1, city: 'Hello' });
        await expectGood(1);
      });

      test('an image', async () => {
        const got = await withHint(client.text(model, 'What is it?', { image: true }));
        assert.match(got.text, /image\/png/);
        await expectGood(1);
      });

      test('stream: an error in the middle', async () => {
        let pieces = 0;
        await assert.rejects(client.text(model, `[[fault:error-late ${shown[name]}]] Hi`, { stream: true, onPiece: () => pieces++ }));
        assert.ok(pieces > 0, 'what came before the error was not shown');
      });

      test('stream: the client leaves', async () => {
        const leave = new AbortController();
        let left;
        await client.text(model, `[[fault:stall ${shown[name]}]] Hi`, {
          stream: true, signal: leave.signal,
          onPiece: () => { left ??= Date.now(); leave.abort(); },
        }).catch(() => {});
        assert.ok(left, 'no piece came');
        const request = await until('the upstream sees the cancel', async () => (await house.upstream.requests()).find((r) => r.cancelled), 5_000);
        const delay = Date.parse(request.cancelled) - left;
        assert.ok(delay < 1_000, `cancelled after ${delay} ms`);
      });
    });
  }
}
