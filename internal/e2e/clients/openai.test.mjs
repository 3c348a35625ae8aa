// The official SDK, over both operations.

import assert from 'node:assert/strict';
import { after, beforeEach, describe, test } from 'node:test';
import OpenAI from 'openai';
import { openHouse, until } from './harness.mjs';

const house = await openHouse();
after(() => house.close());
beforeEach(() => house.upstream.forget());

const connect = (apiKey) => new OpenAI({ baseURL: house.baseURL, apiKey, maxRetries: 0, timeout: 60_000 });
const client = connect(house.key);

const weather = { name: 'weather', description: 'The weather in a city', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } };
const order = 'call weather {"city":"Oslo"}';
const twoOrders = 'call2 weather {"city":"Oslo"}';
const forecast = ({ city }) => `sunny in ${city}`;
const said = 'Hello from small.';

describe('models', () => {
  test('list', async () => {
    const ids = [];
    for await (const m of client.models.list()) {
      assert.equal(m.object, 'model');
      ids.push(m.id);
    }
    assert.deepEqual(ids.filter((id) => ['fast', 'plain', 'lab/small'].includes(id)).sort(), ['fast', 'lab/small', 'plain']);
  });

  for (const id of ['fast', 'lab/small']) {
    test(`retrieve ${id}`, async () => {
      const m = await client.models.retrieve(id);
      assert.equal(m.id, id);
      assert.equal(typeof m.created, 'number');
    });
  }

  test('retrieve what is not there', async () => {
    await assert.rejects(client.models.retrieve('fats'), OpenAI.NotFoundError);
  });
});

// chat and responses are the two ways to ask, each as the SDK wants it. items is the
// conversation in the operation's own form.
const chat = (client) => ({
  name: 'chat',
  tools: [{ type: 'function', function: weather }],
  create: (items, more) => client.chat.completions.create({ model: 'fast', messages: items, ...more }),
  stream: (items, more, options) => client.chat.completions.stream({ model: 'fast', messages: items, ...more }, options),
  streamUsage: { stream_options: { include_usage: true } },
  final: (stream) => stream.finalChatCompletion(),
  delta: (chunk) => chunk.choices[0]?.delta.content,
  text: (answer) => answer.choices[0].message.content,
  calls: (answer) => answer.choices[0].message.tool_calls.map((c) => ({ id: c.id, ...c.function })),
  results: (answer, outputs) => [
    answer.choices[0].message,
    ...outputs.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output })),
  ],
  usage: (u) => [u.prompt_tokens, u.completion_tokens, u.total_tokens],
});

const responses = (client) => ({
  name: 'responses',
  tools: [{ type: 'function', strict: false, ...weather }],
  create: (items, more) => client.responses.create({ model: 'fast', input: items, ...more }),
  stream: (items, more, options) => client.responses.stream({ model: 'fast', input: items, ...more }, options),
  streamUsage: {},
  final: (stream) => stream.finalResponse(),
  delta: (event) => (event.type === 'response.output_text.delta' ? event.delta : ''),
  text: (answer) => answer.output_text,
  calls: (answer) => answer.output.filter((i) => i.type === 'function_call').map((i) => ({ id: i.call_id, name: i.name, arguments: i.arguments })),
  results: (answer, outputs) => [
    ...answer.output.map(({ parsed_arguments, ...item }) => item), // a member that the SDK adds
    ...outputs.map(({ id, output }) => ({ type: 'function_call_output', call_id: id, output })),
  ],
  usage: (u) => [u.input_tokens, u.output_tokens, u.total_tokens],
});

const ask = (prompt) => [{ role: 'user', content: prompt }];

for (const operation of [chat, responses]) {
  const op = operation(client);
  const ways = {
    create: (items, more) => op.create(items, more),
    stream: (items, more) => op.final(op.stream(items, more)),
  };

  describe(op.name, () => {
    for (const [way, turn] of Object.entries(ways)) {
      test(`${way}: a plain turn`, async () => {
        const got = await turn(ask('Say hello.'), op.streamUsage);
        assert.equal(op.text(got), said);
        const [input, output, total] = op.usage(got.usage);
        assert.ok(input > 0 && output > 0, `usage ${input} + ${output}`);
        assert.equal(total, input + output);
      });

      test(`${way}: a tool's round trip`, async () => {
        const items = ask(order);
        const first = await turn(items, { tools: op.tools });
        const [call, ...others] = op.calls(first);
        assert.deepEqual(others, []);
        assert.equal(call.name, 'weather');
        const output = forecast(JSON.parse(call.arguments));
        const second = await turn([...items, ...op.results(first, [{ id: call.id, output }])], { tools: op.tools });
        assert.equal(op.text(second), 'The tool said: sunny in Oslo');
      });

      test(`${way}: parallel tool calls`, async () => {
        const items = ask(twoOrders);
        const first = await turn(items, { tools: op.tools });
        const calls = op.calls(first);
        assert.deepEqual(calls.map((c) => [c.name, JSON.parse(c.arguments)]), [['weather', { city: 'Oslo' }], ['weather', { city: 'Oslo' }]]);
        assert.notEqual(calls[0].id, calls[1].id);
        const results = calls.map((c, i) => ({ id: c.id, output: `result ${i}` }));
        const second = await turn([...items, ...op.results(first, results)], { tools: op.tools });
        assert.equal(op.text(second), 'The tool said: result 1');
      });
    }

    test('stream: text comes in pieces', async () => {
      const stream = op.stream(ask('Say hello.'));
      const pieces = [];
      for await (const e of stream) pieces.push(op.delta(e));
      assert.deepEqual(pieces.filter(Boolean), ['Hello ', 'from ', 'small.']);
    });

    test('stream: the client leaves', async () => {
      const leave = new AbortController();
      const stream = op.stream(ask('[[fault:stall]] Say hello.'), {}, { signal: leave.signal });
      let left;
      await assert.rejects(async () => {
        for await (const _ of stream) {
          left ??= Date.now();
          leave.abort();
        }
      }, OpenAI.APIUserAbortError);
      const request = await until('the upstream sees the cancel', async () => (await house.upstream.requests()).find((r) => r.cancelled));
      const delay = Date.parse(request.cancelled) - left;
      assert.ok(delay < 1_000, `cancelled after ${delay} ms`);
      const row = await until('a record of the call', async () => (await house.calls()).find((c) => c.status === 499 && c.operation === op.name));
      assert.equal(row.model, 'fast');
      assert.equal(row.estimated, true);
      assert.ok(row.input_tokens > 0);
    });

    test('stream: cut in the middle', async () => {
      const stream = op.stream(ask('[[fault:cut]] Say hello.'));
      let seen = 0;
      await assert.rejects(async () => { for await (const _ of stream) seen++; }, (err) => {
        assert.ok(err instanceof OpenAI.APIError, `${err?.constructor?.name}: ${err?.message}`);
        assert.match(err.message, /ended before the answer was complete/);
        return true;
      });
      assert.ok(seen > 0, 'what came before the cut was not shown');
      await until('a record of the failure', async () => (await house.calls()).some((c) => c.status === 502 && c.operation === op.name));
    });

    test('stream: the upstream answers with JSON', async () => {
      const answer = await op.final(op.stream(ask('[[fault:json-to-stream]] Say hello.'), op.streamUsage));
      assert.equal(op.text(answer), said);
      assert.ok(op.usage(answer.usage)[2] > 0);
    });

    test('error: bad key', async () => {
      const stranger = operation(connect('limen_nobody_0000'));
      await assert.rejects(stranger.create(ask('Say hello.')), OpenAI.AuthenticationError);
      assert.deepEqual(await house.upstream.requests(), []);
    });

    test('error: unknown model', async () => {
      await assert.rejects(op.create(ask('Say hello.'), { model: 'fats' }), (err) => {
        assert.ok(err instanceof OpenAI.NotFoundError, String(err));
        assert.equal(err.code, 'model_not_found');
        assert.match(err.message, /fats.*\bfast\b/);
        return true;
      });
      assert.deepEqual(await house.upstream.requests(), []);
    });

    for (const stream of [false, true]) {
      test(`error: the upstream's rate limit, ${stream ? 'stream' : 'create'}`, async () => {
        await assert.rejects(op.create(ask('[[fault:status-429]] Say hello.'), { stream }), (err) => {
          assert.ok(err instanceof OpenAI.RateLimitError, String(err));
          assert.equal(err.headers.get('retry-after'), '7');
          assert.doesNotMatch(err.message, /upstream-secret/);
          return true;
        });
      });
    }
  });
}

describe('chat usage in a stream', () => {
  for (const include_usage of [true, false]) {
    test(`include_usage: ${include_usage}`, async () => {
      const stream = await client.chat.completions.create({
        model: 'fast', stream: true, messages: [{ role: 'user', content: 'Say hello.' }],
        ...(include_usage ? { stream_options: { include_usage } } : {}),
      });
      const chunks = [];
      for await (const c of stream) chunks.push(c);
      assert.equal(chunks.filter((c) => c.usage).length, include_usage ? 1 : 0);
      assert.equal(chunks.filter((c) => c.choices.length === 0).length, include_usage ? 1 : 0);
    });
  }
});

test("the SDK's own tool loop", async () => {
  const runner = client.chat.completions.runTools({
    model: 'fast', stream: true, messages: [{ role: 'user', content: order }],
    tools: [{ type: 'function', function: { ...weather, parse: JSON.parse, function: forecast } }],
  });
  assert.equal(await runner.finalContent(), 'The tool said: sunny in Oslo');
});

test('the record of a call has the tokens that the client was told', async () => {
  const { usage } = await client.chat.completions.create({ model: 'plain', messages: [{ role: 'user', content: 'Count me.' }] });
  const row = await until('a record of the call', async () => (await house.calls()).find((c) => c.model === 'plain'));
  assert.equal(row.key, house.keyID);
  assert.equal(row.status, 200);
  assert.deepEqual([row.input_tokens, row.output_tokens], [usage.prompt_tokens, usage.completion_tokens]);
});
