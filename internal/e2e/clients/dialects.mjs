// The clients of dialects.test.mjs, each brought to two functions:
//
//	text(model, prompt, {stream, think, schema, image, signal, onPiece}) asks once and returns
//	{text, thought, pieces, usage: {input, cached}}
//	loop(model, prompt, {stream, think}) offers the tool weather, lets it run until an answer
//	comes and returns {calls: [[name, arguments]…], text}
//
// status is the HTTP status that an error of the client tells. quiet clients do not show
// thinking, those with summaries show nothing else of it.

import Anthropic from '@anthropic-ai/sdk';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, isStepCount, jsonSchema, Output, streamText, tool } from 'ai';
import OpenAI from 'openai';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const place = { type: 'object', properties: { city: { type: 'string' }, celsius: { type: 'integer' } }, required: ['city', 'celsius'], additionalProperties: false };
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const description = 'The weather in a city';
const forecast = ({ city }) => `sunny in ${city}`;

export const clientsOf = (house) => [
  openaiChat(house), openaiResponses(house), anthropic(house),
  aiSDK(house, 'chat'), aiSDK(house, 'responses'), aiSDK(house, 'compatible'),
  langchain(house, false), langchain(house, true),
];

// looped makes a loop of a client's ask, which takes the conversation in the client's form and
// returns {text, calls: [{id, name, input}], answer}, and of results, which says how the
// answer and its results go on in it.
const looped = (first, ask, results) => async (model, prompt, options) => {
  let items = first(prompt);
  const calls = [];
  for (;;) {
    const turn = await ask(model, items, { ...options, tools: true });
    if (turn.calls.length === 0) return { calls, text: turn.text };
    if (calls.length > 4) throw new Error('the model does not stop to call');
    for (const c of turn.calls) calls.push([c.name, c.input]);
    items = [...items, ...results(turn.answer, turn.calls)];
  }
};

function openaiChat(house) {
  const client = new OpenAI({ baseURL: house.baseURL, apiKey: house.key, maxRetries: 0 });
  const first = (prompt, { image } = {}) => [{
    role: 'user',
    content: image ? [{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }] : prompt,
  }];
  const ask = async (model, messages, { stream, think, schema, tools, signal, onPiece }) => {
    const body = {
      model, messages,
      ...(tools && { tools: [{ type: 'function', function: { name: 'weather', description, parameters } }] }),
      ...(think && { reasoning_effort: 'high' }),
      ...(schema && { response_format: { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: place } } }),
    };
    let message, usage, pieces = 0;
    if (stream) {
      const chunks = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }, { signal });
      const reasoning = { reasoning_content: '', reasoning_details: [] }; // which the SDK does not add up
      for await (const { choices: [choice] } of chunks) {
        if (choice?.delta.content) { pieces++; onPiece?.(); }
        reasoning.reasoning_content += choice?.delta.reasoning_content ?? '';
        addDetails(reasoning.reasoning_details, choice?.delta.reasoning_details ?? []);
      }
      ({ choices: [{ message }], usage } = await chunks.finalChatCompletion());
      if (reasoning.reasoning_content) message.reasoning_content = reasoning.reasoning_content;
      if (reasoning.reasoning_details.length) message.reasoning_details = reasoning.reasoning_details;
    } else {
      ({ choices: [{ message }], usage } = await client.chat.completions.create(body, { signal }));
    }
    return {
      text: message.content, thought: message.reasoning_content, pieces, answer: message,
      calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, input: JSON.parse(c.function.arguments) })),
      usage: { input: usage.prompt_tokens, cached: usage.prompt_tokens_details?.cached_tokens ?? 0 },
    };
  };
  return {
    name: 'openai chat',
    text: (model, prompt, options) => ask(model, first(prompt, options), options),
    loop: looped(first, ask, (answer, calls) => [answer, ...calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: forecast(c.input) }))]),
    status: (err) => err.status,
  };
}

// addDetails joins the details of one block, as OpenRouter tells clients to.
function addDetails(all, deltas) {
  for (const d of deltas) {
    const block = all.find((b) => b.index === d.index && b.type === d.type);
    if (!block) all.push({ ...d });
    else for (const [k, v] of Object.entries(d)) block[k] = k === 'text' || k === 'summary' ? (block[k] ?? '') + v : v;
  }
}

function openaiResponses(house) {
  const client = new OpenAI({ baseURL: house.baseURL, apiKey: house.key, maxRetries: 0 });
  const first = (prompt, { image } = {}) => [{
    role: 'user',
    content: image ? [{ type: 'input_text', text: prompt }, { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' }] : prompt,
  }];
  const ask = async (model, input, { stream, think, schema, tools, signal, onPiece }) => {
    const body = {
      model, input, store: false,
      ...(tools && { tools: [{ type: 'function', name: 'weather', description, parameters, strict: true }] }),
      ...(think && { reasoning: { effort: 'high', summary: 'auto' }, include: ['reasoning.encrypted_content'] }),
      ...(schema && { text: { format: { type: 'json_schema', name: 'place', strict: true, schema: place } } }),
    };
    let answer, pieces = 0;
    if (stream) {
      const events = client.responses.stream(body, { signal });
      for await (const e of events) if (e.type === 'response.output_text.delta') { pieces++; onPiece?.(); }
      answer = await events.finalResponse();
    } else {
      answer = await client.responses.create(body, { signal });
    }
    const items = (type) => answer.output.filter((i) => i.type === type);
    return {
      text: answer.output_text, pieces, answer,
      thought: items('reasoning').flatMap((i) => [...i.summary, ...(i.content ?? [])]).map((s) => s.text).join(''),
      calls: items('function_call').map((c) => ({ id: c.call_id, name: c.name, input: JSON.parse(c.arguments) })),
      usage: { input: answer.usage.input_tokens, cached: answer.usage.input_tokens_details.cached_tokens },
    };
  };
  return {
    name: 'openai responses',
    text: (model, prompt, options) => ask(model, first(prompt, options), options),
    loop: looped(first, ask, (answer, calls) => [
      ...answer.output.map(({ parsed_arguments, ...item }) => item), // a member that the SDK adds
      ...calls.map((c) => ({ type: 'function_call_output', call_id: c.id, output: forecast(c.input) })),
    ]),
    status: (err) => err.status,
  };
}

function anthropic(house) {
  const client = new Anthropic({ baseURL: house.root, apiKey: house.key, maxRetries: 0 });
  const first = (prompt, { image } = {}) => [{
    role: 'user',
    content: image ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }, { type: 'text', text: prompt }] : prompt,
  }];
  const ask = async (model, messages, { stream, think, schema, tools, signal, onPiece }) => {
    const body = {
      model, messages, max_tokens: 4096,
      ...(tools && { tools: [{ name: 'weather', description, input_schema: parameters }] }),
      ...(think && { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } }),
      ...(schema && { output_config: { format: { type: 'json_schema', schema: place } } }),
    };
    let answer, pieces = 0;
    if (stream) {
      const events = client.messages.stream(body, { signal });
      events.on('text', () => { pieces++; onPiece?.(); });
      answer = await events.finalMessage();
    } else {
      answer = await client.messages.create(body, { signal });
    }
    const blocks = (type) => answer.content.filter((b) => b.type === type);
    const u = answer.usage;
    return {
      text: blocks('text').map((b) => b.text).join(''), pieces, answer,
      thought: blocks('thinking').map((b) => b.thinking).join(''),
      calls: blocks('tool_use').map((b) => ({ id: b.id, name: b.name, input: b.input })),
      usage: { input: u.input_tokens + (u.cache_read_input_tokens ?? 0) + (u.cache_creation_input_tokens ?? 0), cached: u.cache_read_input_tokens ?? 0 },
    };
  };
  return {
    name: '@anthropic-ai/sdk',
    text: (model, prompt, options) => ask(model, first(prompt, options), options),
    loop: looped(first, ask, (answer, calls) => [
      { role: 'assistant', content: answer.content },
      { role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: forecast(c.input) })) },
    ]),
    status: (err) => err.status,
  };
}

function aiSDK(house, kind) {
  const openai = createOpenAI({ baseURL: house.baseURL, apiKey: house.key });
  const compatible = createOpenAICompatible({ name: 'gw', baseURL: house.baseURL, apiKey: house.key, includeUsage: true, supportsStructuredOutputs: true });
  const modelOf = { chat: openai.chat, responses: openai.responses, compatible }[kind];
  const thinking = {
    chat: { openai: { reasoningEffort: 'high', forceReasoning: true } },
    responses: { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true, store: false } },
    compatible: { gw: { reasoningEffort: 'high' } },
  }[kind];
  const stateless = kind === 'responses' ? { openai: { store: false } } : undefined;

  const run = async (model, prompt, { stream, think, schema, image, tools, signal, onPiece }) => {
    const options = {
      model: modelOf(model), maxRetries: 0, abortSignal: signal,
      messages: [{ role: 'user', content: [{ type: 'text', text: prompt }, ...(image ? [{ type: 'file', data: Buffer.from(png, 'base64'), mediaType: 'image/png' }] : [])] }],
      providerOptions: think ? thinking : stateless,
      ...(tools && { tools: { weather: tool({ description, inputSchema: jsonSchema(parameters), execute: forecast }) }, stopWhen: isStepCount(4) }),
      ...(schema && { output: Output.object({ schema: jsonSchema(place), name: 'place' }) }),
    };
    let answer, pieces = 0;
    if (stream) {
      const parts = streamText({ ...options, onError() {} });
      for await (const part of parts.fullStream) {
        if (part.type === 'error') throw part.error;
        if (part.type === 'text-delta') { pieces++; onPiece?.(); }
      }
      answer = { text: await parts.text, steps: await parts.steps };
    } else {
      const result = await generateText(options);
      answer = { text: result.text, steps: result.steps };
    }
    const usage = answer.steps[0].usage;
    return {
      text: answer.text, pieces,
      thought: answer.steps[0].reasoningText,
      calls: answer.steps.flatMap((s) => s.toolCalls).map((c) => [c.toolName, c.input]),
      usage: { input: usage.inputTokens, cached: usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens ?? 0 },
    };
  };
  return {
    name: `ai with ${kind === 'compatible' ? '@ai-sdk/openai-compatible' : `@ai-sdk/openai ${kind}`}`,
    quiet: kind === 'chat',
    summaries: kind === 'responses',
    text: run,
    loop: (model, prompt, options) => run(model, prompt, { ...options, tools: true }),
    status: (err) => err.statusCode ?? err.lastError?.statusCode,
  };
}

function langchain(house, useResponsesApi) {
  const first = (prompt, { image } = {}) => [new HumanMessage(
    image ? { content: [{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }] } : prompt,
  )];
  const ask = async (model, messages, { stream, schema, tools, signal, onPiece }) => {
    let chat = new ChatOpenAI({ model, apiKey: house.key, configuration: { baseURL: house.baseURL }, useResponsesApi, maxRetries: 0, streamUsage: true });
    if (tools) chat = chat.bindTools([{ type: 'function', function: { name: 'weather', description, parameters } }]);
    if (schema) return { text: JSON.stringify(await chat.withStructuredOutput(place, { name: 'place', method: 'jsonSchema' }).invoke(messages)) };
    let answer, pieces = 0;
    if (stream) {
      for await (const chunk of await chat.stream(messages, { signal })) {
        if (chunk.text) { pieces++; onPiece?.(); }
        answer = answer ? answer.concat(chunk) : chunk;
      }
      answer = new AIMessage({ content: answer.content, tool_calls: answer.tool_calls, usage_metadata: answer.usage_metadata, additional_kwargs: answer.additional_kwargs, response_metadata: answer.response_metadata });
    } else {
      answer = await chat.invoke(messages, { signal });
    }
    const u = answer.usage_metadata;
    return {
      text: answer.text, pieces, answer,
      calls: answer.tool_calls.map((c) => ({ id: c.id, name: c.name, input: c.args })),
      usage: { input: u?.input_tokens, cached: u?.input_token_details?.cache_read ?? 0 },
    };
  };
  return {
    name: `@langchain/openai ${useResponsesApi ? 'responses' : 'chat'}`,
    quiet: true,
    text: (model, prompt, options) => ask(model, first(prompt, options), options),
    loop: looped(first, ask, (answer, calls) => [answer, ...calls.map((c) => new ToolMessage({ tool_call_id: c.id, content: forecast(c.input) }))]),
    status: (err) => err.status ?? err.cause?.status,
  };
}
