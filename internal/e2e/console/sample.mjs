// Who uses the gateway of the pictures, and how.

export const vendors = {
  anthropic: ['claude-opus-4-5', 'claude-sonnet-4-5', 'claude-haiku-4-5'],
  openai: ['gpt-5.2', 'gpt-5.2-codex', 'gpt-5-mini'],
  gemini: ['gemini-3-pro-preview', 'gemini-2.5-flash'],
};

/** sampleConfig is the configuration, with all vendors at one address. @param {string} url */
export const sampleConfig = (url) => `providers:
${Object.entries(vendors).map(([name, models]) => `  ${name}: {base_url: "${url.replace(/v1$/, name + '/v1')}", api_key: sample, speaks: [openai-chat], models: [${models.join(', ')}]}`).join('\n')}
models:
  coding: {targets: [anthropic/claude-sonnet-4-5, openai/gpt-5.2-codex], description: "For agents that write code"}
  fast: {targets: [openai/gpt-5-mini, gemini/gemini-2.5-flash, anthropic/claude-haiku-4-5], description: "Cheap and quick"}
usage: {tags: {headers: {x-project: project}}}
`;

/** randomly is a row of numbers from 0 to 1, the same one for the same start. @param {number} seed */
export function randomly(seed) {
  return () => {
    seed = seed + 0x6d2b79f5 | 0;
    let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}

/** around is a number near another one, rarely far from it. */
const around = (random, middle) => Math.max(1, Math.round(middle * Math.exp((random() + random() + random() - 1.5) * 1.1)));

/** client makes a kind of client: which model it asks for, who serves that, and how large its calls are. */
const client = (one) => ({
  ...one,
  call: ({ at, random, prices, key, team }) => {
    const second = one.targets.length > 1 && random() < 0.07;
    const target = one.targets[second ? 1 : 0];
    const [provider, upstream] = target.split('/');
    const failed = !second && random() < (one.failing ?? 0.012);
    const Input = around(random, one.input), CacheRead = one.cached ? around(random, one.cached) : 0;
    const Output = failed ? 0 : around(random, one.output), Reasoning = failed || !one.reasoning ? 0 : around(random, one.reasoning);
    const price = prices[target];
    const cost = (Input * price.input + CacheRead * (price.cache_read ?? 0) + (Output + Reasoning) * price.output) / 1e6;
    const wait = second ? around(random, 380) : 0;
    const FirstMs = wait + around(random, one.first), TotalMs = FirstMs + (Output + Reasoning) * one.slow;
    return {
      At: at, Key: key, Team: team, Operation: one.operation, Model: one.model, Provider: provider, Upstream: upstream, Stream: one.stream ?? true,
      Status: failed ? 502 : 200, Error: failed ? 'upstream_error' : '', FirstMs: failed ? 0 : FirstMs, TotalMs: failed ? around(random, 900) : TotalMs,
      Input: failed ? 0 : Input, CacheRead: failed ? 0 : CacheRead, Output, Reasoning, Cost: failed ? 0 : Number(cost.toFixed(9)), Tags: one.project ? 'project=' + one.project : '',
      Notes: '', Steps: second ? [
        { target: one.targets[0], account: one.targets[0].split('/')[0], result: 'status 529', tried: true, at_ms: 0.4, took_ms: wait },
        { target, account: provider, result: 'ok', tried: true, at_ms: wait + 0.3, took_ms: FirstMs - wait },
      ] : [],
    };
  },
});

/** The clients of the sample: each has a key. */
export const clients = [
  client({ name: 'mara-claude-code', owner: 'mara', team: 'platform', budgets: ['40/day', '300/month'], limits: { rpm: 120, concurrency: 8 }, model: 'coding', operation: 'messages', project: 'checkout',
    targets: ['anthropic/claude-sonnet-4-5', 'openai/gpt-5.2-codex'], daily: 14, input: 2600, cached: 48000, output: 620, reasoning: 210, first: 840, slow: 11, prompts: ['refactor the retry loop', 'retry: write a test for it', 'explain this stack trace'] }),
  client({ name: 'ben-codex', owner: 'ben', team: 'platform', budgets: ['25/day'], limits: { rpm: 120 }, model: 'openai/gpt-5.2-codex', operation: 'responses', project: 'checkout',
    targets: ['openai/gpt-5.2-codex'], daily: 9, input: 3100, cached: 36000, output: 540, reasoning: 480, first: 1150, slow: 9, prompts: ['why does this query scan the table'] }),
  client({ name: 'ci-review', owner: 'platform team', team: 'platform', budgets: ['60/month'], model: 'fast', operation: 'chat', project: 'ci', stream: false,
    targets: ['openai/gpt-5-mini', 'gemini/gemini-2.5-flash'], daily: 8, weekend: 0.5, input: 9400, output: 410, first: 1900, slow: 4, prompts: ['review this change', 'review this change again'] }),
  client({ name: 'support-bot', owner: 'jonas', team: 'support', budgets: ['5/day', '100/month'], limits: { rpm: 300, tpm: 200000 }, model: 'anthropic/claude-haiku-4-5', operation: 'chat', project: 'helpdesk',
    targets: ['anthropic/claude-haiku-4-5'], daily: 17, weekend: 0.8, input: 3800, cached: 2900, output: 240, first: 430, slow: 6, prompts: ['where is my parcel', 'how do I change my address'] }),
  client({ name: 'search-index', owner: 'ines', team: 'research', model: 'gemini/gemini-2.5-flash', operation: 'chat', project: 'search', stream: false,
    targets: ['gemini/gemini-2.5-flash'], daily: 11, weekend: 1, input: 14200, output: 130, first: 620, slow: 3, failing: 0.05, prompts: ['summarise the page'] }),
  client({ name: 'notebooks', owner: 'ines', team: 'research', budgets: ['80/month soft'], model: 'anthropic/claude-opus-4-5', operation: 'messages',
    targets: ['anthropic/claude-opus-4-5'], daily: 3, weekend: 0.3, input: 6200, cached: 11000, output: 980, reasoning: 700, first: 1600, slow: 14, prompts: ['compare the two hypotheses'] }),
];

const tokens = { coding: [61000, 900], 'gpt-5.2-codex': [52000, 1100], 'claude-sonnet-4-5': [64000, 1300], 'claude-opus-4-5': [38000, 1600] };
const answers = {
  'claude-sonnet-4-5': 'It stands between your programs and the vendors: one address and one key for every model, with budgets, fallbacks and a record of each call.',
  'gpt-5-mini': 'A gateway takes calls at one address, sends each to a model that can serve it, and keeps track of who spent what.',
};

/** shapes is what the vendor of the sample says. @param {string} model @param {string} prompt */
export function shapes(model, prompt) {
  if (prompt.startsWith('retry') && model.startsWith('claude')) return { status: 529, error: 'Overloaded', after: 260 };
  const [input, output] = tokens[model] ?? [4200, 260];
  return {
    text: answers[model] ?? 'Done.', after: 260 + prompt.length * 13, lasts: prompt.length * 37,
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, prompt_tokens_details: { cached_tokens: Math.round(input * 0.8) } },
  };
}
