// What the gateway keeps: responses, conversations, runs in the background, and sockets, each
// by the official SDK, over what an upstream may speak.

import assert from 'node:assert/strict';
import { after, beforeEach, describe, test as within } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { openHouse, until, upstreams } from './harness.mjs';

const house = await openHouse();
after(() => house.close());
beforeEach(() => house.upstream.forget());

const test = (name, run) => within(name, { timeout: 20_000 }, run);
const client = new OpenAI({ baseURL: house.baseURL, apiKey: house.key, maxRetries: 0, timeout: 15_000 });

const tools = [{ type: 'function', name: 'weather', description: 'The weather in a city', strict: false, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } }];
const order = 'call weather {"city":"Oslo"}';
const said = 'The tool said: sunny';
const result = (response) => response.output.filter((i) => i.type === 'function_call').map((i) => ({ type: 'function_call_output', call_id: i.call_id, output: 'sunny' }));
const spoken = (items) => items.filter((i) => i.type !== 'reasoning'); // some models think unasked
const texts = (items) => spoken(items).map((i) => (i.content ?? []).map((c) => c.text).join('') || i.output || i.name);
const all = async (pages) => { const list = []; for await (const item of pages) list.push(item); return list; };

// expectGood is that the upstream took what it got, as its vendor would have.
async function expectGood(requests) {
  const made = await house.upstream.requests();
  assert.deepEqual(made.map((r) => r.refused).filter(Boolean), []);
  assert.equal(made.length, requests);
  return made;
}

// ended polls a response as its documentation shows.
const ended = (id) => until(`the end of ${id}`, async () => {
  const response = await client.responses.retrieve(id);
  return !['queued', 'in_progress'].includes(response.status) && response;
});

for (const [name, { model: upstreamModel }] of Object.entries(upstreams)) {
  const model = `to-${name}`;
  const hello = `Hello from ${upstreamModel}.`;
  const create = (body) => client.responses.create({ model, ...body });
  const stream = (body) => client.responses.stream({ model, ...body }).finalResponse();

  describe(`to ${name}`, { timeout: 60_000 }, () => {
    for (const [way, ask] of [['create', create], ['stream', stream]]) {
      test(`${way}: previous_response_id`, async () => {
        const first = await ask({ input: order, tools, reasoning: { effort: 'high' } });
        const second = await ask({ previous_response_id: first.id, input: result(first), tools, reasoning: { effort: 'high' } });
        assert.equal(second.output_text, said);
        assert.equal(second.previous_response_id, first.id);
        const third = await ask({ previous_response_id: second.id, input: 'And now?', instructions: 'Be brief.' });
        assert.equal(third.output_text, hello);
        const [, , { body }] = await expectGood(3);
        for (const told of ['Oslo', 'sunny', said, 'And now?', 'Be brief.']) assert.ok(body.includes(told), `${told} is not in ${body}`);
      });

      test(`${way}: retrieve and delete`, async () => {
        const made = await ask({ input: order, tools, store: true, metadata: { a: 'b' } });
        const { output_text, output_parsed, ...plain } = made;
        for (const item of plain.output) delete item.parsed_arguments; // a member that the SDK adds
        const { output_text: same, ...kept } = await client.responses.retrieve(made.id);
        assert.deepEqual(kept, plain);
        assert.deepEqual([kept.status, kept.store, kept.metadata], ['completed', true, { a: 'b' }]);
        await client.responses.delete(made.id);
        await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError);
        await assert.rejects(client.responses.delete(made.id), OpenAI.NotFoundError);
        await assert.rejects(ask({ previous_response_id: made.id, input: 'Hi' }), (err) => err.status === 400 && err.code === 'previous_response_not_found');
      });
    }

    test('store: false', async () => {
      const made = await create({ input: 'Hi', store: false });
      assert.equal(made.store, false);
      await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError);
    });

    test('input items', async () => {
      const first = await create({ input: [{ role: 'developer', content: 'Be brief.' }, { role: 'user', content: order }], tools });
      const second = await create({ previous_response_id: first.id, input: result(first), tools });
      const items = await all(client.responses.inputItems.list(second.id, { order: 'asc', limit: 1 }));
      assert.deepEqual(texts(items), ['Be brief.', order, 'weather', 'sunny']);
      assert.equal(new Set(items.map((i) => i.id)).size, items.length);
      assert.deepEqual(await all(client.responses.inputItems.list(second.id, { limit: 2 })), items.toReversed());
    });

    test('items by reference', async () => {
      const first = await create({ input: order, tools, reasoning: { effort: 'high' } });
      const references = first.output.map(({ id }) => ({ type: 'item_reference', id }));
      const second = await create({ input: [{ role: 'user', content: order }, ...references, ...result(first)], tools, reasoning: { effort: 'high' } });
      assert.equal(second.output_text, said);
      await expectGood(2);
      await assert.rejects(create({ input: [{ type: 'item_reference', id: 'msg_none' }] }), (err) => err instanceof OpenAI.NotFoundError && /msg_none/.test(err.message));
    });

    test('a conversation', async () => {
      const { id } = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'I live in Oslo.' }, { type: 'message', role: 'assistant', content: 'I see.' }] });
      const first = await create({ conversation: id, input: order, tools });
      assert.deepEqual(first.conversation, { id });
      const second = await stream({ conversation: { id }, input: result(first), tools });
      assert.equal(second.output_text, said);
      const [, { body }] = await expectGood(2);
      assert.ok(body.includes('I live in Oslo.') && body.includes('I see.'), body);
      const items = await all(client.conversations.items.list(id, { order: 'asc', limit: 2 }));
      assert.deepEqual(texts(items), ['I live in Oslo.', 'I see.', order, 'weather', 'sunny', said]);
      await assert.rejects(create({ conversation: id, previous_response_id: first.id, input: 'Hi' }), OpenAI.BadRequestError);
    });

    test('in the background', async () => {
      const begun = await create({ input: 'Hi', background: true });
      assert.deepEqual([begun.status, begun.background, begun.output], ['queued', true, []]);
      const response = await ended(begun.id);
      assert.deepEqual([response.status, response.output_text], ['completed', hello]);
      const next = await create({ previous_response_id: begun.id, input: 'And?' });
      assert.equal(next.output_text, hello);
      await expectGood(2);
    });

    test('in the background, as a stream', async () => {
      const begun = await create({ input: '[[fault:slow 20]] Hi', background: true, stream: true });
      const events = [];
      for await (const e of begun) {
        events.push(e);
        if (e.type === 'response.output_text.delta') break; // the client leaves, the run goes on
      }
      const { id } = events[0].response;
      events.push(...await all(await client.responses.retrieve(id, { stream: true, starting_after: events.at(-1).sequence_number })));
      assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
      assert.equal(events.at(-1).type, 'response.completed');
      assert.deepEqual(texts(events.at(-1).response.output), [hello]);
      assert.deepEqual(await all(await client.responses.retrieve(id, { stream: true })), events);
      const again = client.responses.stream({ response_id: id });
      assert.equal((await again.finalResponse()).output_text, hello);
      const rest = client.responses.stream({ response_id: id, starting_after: 2 });
      assert.equal((await rest.finalResponse()).output_text, hello);
      await expectGood(1);
    });

    test('in the background, cancelled', async () => {
      const { id } = await create({ input: '[[fault:stall]] Hi', background: true });
      await until('the upstream has it', async () => (await house.upstream.requests()).some((r) => r.frames > 0));
      assert.equal((await client.responses.cancel(id)).status, 'cancelled');
      assert.equal((await client.responses.cancel(id)).status, 'cancelled');
      assert.equal((await client.responses.retrieve(id)).status, 'cancelled');
      await until('the upstream sees the cancel', async () => (await house.upstream.requests()).some((r) => r.cancelled), 5_000);
    });

    test('in the background, failed', async () => {
      const response = await ended((await create({ input: '[[fault:status-500]] Hi', background: true })).id);
      assert.equal(response.status, 'failed');
      assert.equal(response.error.code, 'server_error');
      assert.doesNotMatch(response.error.message, /upstream-secret/);
    });

    test('over a socket', async () => {
      const socket = new ResponsesWS(client);
      const failures = [];
      socket.on('error', (err) => failures.push(err)); // else it is nobody's
      const turn = (body) => {
        socket.send({ type: 'response.create', model, store: false, tools, ...body });
        return new Promise((resolve, reject) => {
          socket.once('response.completed', (e) => resolve(e.response));
          socket.once('error', reject);
          socket.once('close', () => reject(new Error('the socket was closed')));
        });
      };
      const closed = new Promise((resolve) => socket.once('close', resolve));
      try {
        const first = await turn({ input: order });
        const second = await turn({ previous_response_id: first.id, input: result(first) });
        assert.deepEqual(texts(second.output), [said]);
        const third = await turn({ previous_response_id: second.id, input: 'And now?', tools: undefined });
        assert.deepEqual(texts(third.output), [hello]);
        await expectGood(3);
        await assert.rejects(turn({ previous_response_id: 'resp_none', input: 'Hi' }), (err) => err.error.error.code === 'previous_response_not_found');
        const fourth = await turn({ input: 'Anew.', tools: undefined });
        assert.deepEqual(texts(fourth.output), [hello]);
        assert.equal(failures.length, 1);
        await assert.rejects(client.responses.retrieve(fourth.id), OpenAI.NotFoundError);
      } finally {
        socket.close();
      }
      await closed;
    });
  });
}

describe('conversations', () => {
  test('create, retrieve, update, delete', async () => {
    const made = await client.conversations.create({ metadata: { topic: 'weather' } });
    assert.equal(made.object, 'conversation');
    assert.deepEqual(await client.conversations.retrieve(made.id), made);
    const changed = await client.conversations.update(made.id, { metadata: { topic: 'rain' } });
    assert.deepEqual(changed, { ...made, metadata: { topic: 'rain' } });
    assert.deepEqual(await client.conversations.retrieve(made.id), changed);
    assert.deepEqual(await client.conversations.delete(made.id), { id: made.id, object: 'conversation.deleted', deleted: true });
    await assert.rejects(client.conversations.retrieve(made.id), OpenAI.NotFoundError);
    await assert.rejects(client.conversations.items.list(made.id), OpenAI.NotFoundError);
    await assert.rejects(client.responses.create({ model: 'fast', conversation: made.id, input: 'Hi' }), OpenAI.NotFoundError);
  });

  test('items: create, list, retrieve, delete', async () => {
    const { id: conversation_id } = await client.conversations.create();
    const words = Array.from({ length: 20 }, (_, i) => `word ${i}`);
    const added = await client.conversations.items.create(conversation_id, { items: words.map((content) => ({ type: 'message', role: 'user', content })) });
    assert.deepEqual(texts(added.data), words);
    await client.conversations.items.create(conversation_id, { items: [{ type: 'message', role: 'assistant', content: 'enough' }] });
    const listed = await all(client.conversations.items.list(conversation_id)); // two pages of the usual size
    assert.deepEqual(texts(listed), ['enough', ...words.toReversed()]);
    const item = await client.conversations.items.retrieve(listed[3].id, { conversation_id });
    assert.deepEqual(item, listed[3]);
    const left = await client.conversations.items.delete(item.id, { conversation_id });
    assert.equal(left.id, conversation_id);
    await assert.rejects(client.conversations.items.retrieve(item.id, { conversation_id }), OpenAI.NotFoundError);
    assert.deepEqual(await all(client.conversations.items.list(conversation_id, { limit: 7 })), listed.filter((i) => i.id !== item.id));
  });

  test('one turn at a time', async () => {
    const { id } = await client.conversations.create();
    const leave = new AbortController();
    const slow = client.responses.create({ model: 'fast', conversation: id, input: '[[fault:stall]] Hi', stream: true }, { signal: leave.signal });
    const events = all(await slow);
    await until('the upstream has it', async () => (await house.upstream.requests()).some((r) => r.frames > 0));
    await assert.rejects(client.responses.create({ model: 'fast', conversation: id, input: 'Hi' }), (err) => err instanceof OpenAI.ConflictError && err.code === 'conversation_locked');
    leave.abort();
    await events.catch(() => {});
    const next = await until('the lock is gone', () => client.responses.create({ model: 'fast', conversation: id, input: 'Hi' }).catch((err) => { if (err.status !== 409) throw err; }));
    assert.equal(next.output_text, 'Hello from small.');
  });
});
