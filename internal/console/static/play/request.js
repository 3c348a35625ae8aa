// What is asked of a model: the settings and the conversation so far.

/**
 * @typedef {{system: string, temperature: string, most: string, effort: string, tools: string}} Settings as they are typed
 * @typedef {{text: string, images: string[]}} Asked images are data: URLs
 * @typedef {{asked: Asked|null, answers: (import('./stream.js').Answer|null)[]}} Turn asked is null where only results of tools were sent; an answer is that of a column
 */

/** tools reads the field for functions: a list of tools, or of bare functions. @param {string} text */
export function tools(text) {
  if (!text.trim()) return [];
  const read = JSON.parse(text);
  return (Array.isArray(read) ? read : [read]).map((tool) => {
    const f = tool?.type === 'function' ? tool.function : tool;
    if (typeof f?.name !== 'string') throw new Error('Each function needs a name.');
    return { type: 'function', function: f };
  });
}

/** @param {string} text what is wrong with the field for functions; '' when it is good */
export function toolsProblem(text) {
  try {
    tools(text);
    return '';
  } catch (err) {
    return /** @type {Error} */ (err).message;
  }
}

/** @param {Asked} asked */
const content = ({ text, images }) => (images.length ? [...(text ? [{ type: 'text', text }] : []), ...images.map((url) => ({ type: 'image_url', image_url: { url } }))] : text);

/** messages are those of one column, which begins with those of the first. An answer that failed is left out, with its question. @param {Turn[]} turns @param {number} column */
function messages(turns, column) {
  const list = /** @type {any[]} */ ([]);
  for (const turn of turns) {
    const a = turn.answers[column < turn.answers.length ? column : 0];
    if (!a || !a.text && !a.calls.length) continue;
    if (turn.asked) list.push({ role: 'user', content: content(turn.asked) });
    list.push({ role: 'assistant', content: a.text || null, ...(a.calls.length ? { tool_calls: a.calls } : {}) });
    for (const call of a.calls) list.push({ role: 'tool', tool_call_id: call.id, content: a.results[call.id] ?? '' });
  }
  return list;
}

/**
 * request is what goes to /v1/chat/completions for one column.
 * @param {string} model @param {Settings} s @param {Turn[]} turns @param {Asked|null} asked @param {number} column
 */
export function request(model, s, turns, asked, column) {
  const functions = toolsProblem(s.tools) ? [] : tools(s.tools);
  return {
    model,
    messages: [...(s.system.trim() ? [{ role: 'system', content: s.system }] : []), ...messages(turns, column), ...(asked ? [{ role: 'user', content: content(asked) }] : [])],
    ...(s.temperature !== '' ? { temperature: Number(s.temperature) } : {}),
    ...(s.most !== '' ? { max_tokens: Number(s.most) } : {}),
    ...(s.effort ? { reasoning_effort: s.effort } : {}),
    ...(functions.length ? { tools: functions } : {}),
    stream: true,
    stream_options: { include_usage: true },
  };
}
