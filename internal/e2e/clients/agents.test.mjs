// Agent frameworks that leave the conversation with the gateway, by what they do unasked: the
// AI SDK sends its history by reference, LangChain and OpenAI's Agents SDK go on from a response.

import assert from 'node:assert/strict';
import { after, beforeEach, describe, test as within } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, handoff, OpenAIConversationsSession, OpenAIProvider, Runner, tool as agentTool } from '@openai/agents';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { WebSocket } from 'ws';
import { openHouse, upstreams } from './harness.mjs';

globalThis.WebSocket ??= WebSocket; // which the Agents SDK takes from Node, from version 22 on

const house = await openHouse();
after(() => house.close());
beforeEach(() => house.upstream.forget());

const test = (name, run) => within(name, { timeout: 20_000 }, run);
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const description = 'The weather in a city';
const forecast = ({ city }) => `sunny in ${city}`;
const steps = 'call weather {"city":"Oslo"} then call2 weather {"city":"Bergen"} then call weather {"city":"Narvik"}';
const cities = ['Oslo', 'Bergen', 'Bergen', 'Narvik'];
const said = 'The tool said: sunny in Narvik';

// expectGood is that the upstream took what it got, and got all of the conversation.
async function expectGood(requests, ...told) {
  const made = await house.upstream.requests();
  assert.deepEqual(made.map((r) => r.refused).filter(Boolean), []);
  assert.equal(made.length, requests);
  for (const t of told) assert.ok(made.at(-1).body.includes(t), `${t} is not in ${made.at(-1).body}`);
}

// listened is a fetch that keeps what the client sent, and where.
function listened() {
  const sent = [];
  return { sent, fetch: (url, init) => { if (init.body) sent.push({ url: String(url), ...JSON.parse(init.body) }); return fetch(url, init); } };
}

for (const [name, { model: upstreamModel }] of Object.entries(upstreams)) {
  const model = `to-${name}`;
  const hello = `Hello from ${upstreamModel}.`;

  describe(`ai with @ai-sdk/openai to ${name}`, { timeout: 60_000 }, () => {
    const ways = {
      whole: async (options) => { const r = await generateText(options); return { text: r.text, steps: r.steps, messages: r.responseMessages ?? r.response.messages }; },
      stream: async (options) => {
        const r = streamText({ ...options, onError() {} });
        for await (const part of r.fullStream) if (part.type === 'error') throw part.error;
        return { text: await r.text, steps: await r.steps, messages: await r.responseMessages ?? (await r.response).messages };
      },
    };
    for (const [way, run] of Object.entries(ways)) {
      for (const think of [false, true]) {
        test(`${way}: a loop of several steps${think ? ' with thinking' : ''}`, async () => {
          const { sent, fetch } = listened();
          const openai = createOpenAI({ baseURL: house.baseURL, apiKey: house.key, fetch });
          const options = {
            model: openai(model), maxRetries: 0, stopWhen: isStepCount(6),
            tools: { weather: tool({ description, inputSchema: jsonSchema(parameters), execute: forecast }) },
            ...(think && { providerOptions: { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true } } }),
          };
          const first = await run({ ...options, messages: [{ role: 'user', content: steps }] });
          assert.deepEqual(first.steps.flatMap((s) => s.toolCalls).map((c) => c.input.city), cities);
          assert.equal(first.text, said);
          await expectGood(4, ...cities);
          const second = await run({ ...options, messages: [{ role: 'user', content: steps }, ...first.messages, { role: 'user', content: 'Thanks.' }], toolChoice: 'none' });
          assert.equal(second.text, hello);
          await expectGood(5, ...cities, said, 'Thanks.');
          const last = JSON.stringify(sent.at(-1));
          assert.ok(last.includes('item_reference') && !last.includes(said), `not by reference: ${last}`);
        });
      }
    }
  });

  describe(`@langchain/openai to ${name}`, { timeout: 60_000 }, () => {
    const chat = new ChatOpenAI({ model, apiKey: house.key, configuration: { baseURL: house.baseURL }, useResponsesApi: true, maxRetries: 0 })
      .bindTools([{ type: 'function', function: { name: 'weather', description, parameters } }]);
    const ways = {
      whole: (...args) => chat.invoke(...args),
      stream: async (...args) => {
        let answer;
        for await (const chunk of await chat.stream(...args)) answer = answer?.concat(chunk) ?? chunk;
        return answer;
      },
    };
    for (const [way, ask] of Object.entries(ways)) {
      test(`${way}: previous_response_id`, async () => {
        let answer = await ask([new HumanMessage(steps)]);
        const called = [];
        while (answer.tool_calls.length > 0) {
          called.push(...answer.tool_calls.map((c) => c.args.city));
          const results = answer.tool_calls.map((c) => new ToolMessage({ tool_call_id: c.id, content: forecast(c.args) }));
          answer = await ask(results, { previous_response_id: answer.response_metadata.id });
        }
        assert.deepEqual(called, cities);
        assert.equal(answer.text, said);
        await expectGood(4, ...cities, steps.slice(0, 12));
      });
    }
  });
}

for (const [name, { model: upstreamModel }] of Object.entries(upstreams)) {
  const model = `to-${name}`;
  const hello = `Hello from ${upstreamModel}.`;

  describe(`@openai/agents to ${name}`, { timeout: 60_000 }, () => {
    const { sent, fetch } = listened();
    const openAIClient = new OpenAI({ baseURL: house.baseURL, apiKey: house.key, maxRetries: 0, fetch });
    const weather = agentTool({ name: 'weather', description, parameters, strict: true, execute: forecast });
    const forecaster = new Agent({ name: 'Forecaster', model, instructions: 'Tell the weather.', handoffDescription: 'Knows the weather', tools: [weather] });
    const concierge = Agent.create({ name: 'Concierge', model, instructions: 'Help.', handoffs: [handoff(forecaster)] });
    const passed = `call transfer_to_Forecaster {} then ${steps}`;

    for (const [transport, options] of Object.entries({
      responses: { useResponses: true }, chat: { useResponses: false },
      socket: { useResponses: true, useResponsesWebSocket: true },
    })) {
      const provider = new OpenAIProvider({ openAIClient, ...options });
      const runner = new Runner({ modelProvider: provider, tracingDisabled: true });
      after(() => provider.close());
      const ways = {
        whole: (...args) => runner.run(...args),
        stream: async (agent, input, more) => {
          const result = await runner.run(agent, input, { ...more, stream: true });
          let text = '';
          for await (const piece of result.toTextStream()) text += piece;
          await result.completed;
          assert.ok(text.endsWith(result.finalOutput), `streamed ${text}`);
          return result;
        },
      };
      const called = (result) => result.newItems.filter((i) => i.type === 'tool_call_item').map((i) => JSON.parse(i.rawItem.arguments).city);

      for (const [way, run] of Object.entries(ways)) {
        test(`${transport}, ${way}: tools and a handoff`, async () => {
          const first = await run(concierge, passed);
          assert.equal(first.finalOutput, said);
          assert.equal(first.lastAgent.name, 'Forecaster');
          assert.deepEqual(called(first), cities);
          await expectGood(5, ...cities);
          const second = await run(new Agent({ name: 'Host', model, instructions: 'Part.' }), [...first.history, { role: 'user', content: 'Thanks.' }]);
          assert.equal(second.finalOutput, hello);
          await expectGood(6, ...cities, said, 'Thanks.');
        });

        if (transport === 'chat') continue;
        test(`${transport}, ${way}: previousResponseId`, async () => {
          sent.length = 0;
          const first = await run(forecaster, steps);
          const second = await run(new Agent({ name: 'Host', model }), 'Thanks.', { previousResponseId: first.lastResponseId });
          assert.deepEqual([first.finalOutput, second.finalOutput], [said, hello]);
          await expectGood(5, ...cities, said, 'Thanks.');
          assert.deepEqual(sent.at(-1)?.input.map((i) => i.content), transport === 'socket' ? undefined : ['Thanks.']);
        });

        test(`${transport}, ${way}: a conversation`, async () => {
          const { id: conversationId } = await openAIClient.conversations.create();
          const first = await run(concierge, passed, { conversationId });
          const second = await run(new Agent({ name: 'Host', model }), 'Thanks.', { conversationId });
          assert.deepEqual([first.finalOutput, second.finalOutput], [said, hello]);
          await expectGood(6, ...cities, said, 'Thanks.');
        });

        test(`${transport}, ${way}: a session of conversations`, async () => {
          const session = new OpenAIConversationsSession({ client: openAIClient });
          const first = await run(concierge, passed, { session });
          const second = await run(new Agent({ name: 'Host', model }), 'Thanks.', { session });
          assert.deepEqual([first.finalOutput, second.finalOutput], [said, hello]);
          await expectGood(6, ...cities, said, 'Thanks.');
          const items = await session.getItems();
          assert.equal(items.filter((i) => i.type === 'function_call_result').length, 5);
          const popped = await session.popItem();
          assert.match(JSON.stringify(popped), /Hello from|reasoning/);
          assert.equal((await session.getItems()).length, items.length - 1);
          await session.clearSession();
        });
      }
    }
  });
}
