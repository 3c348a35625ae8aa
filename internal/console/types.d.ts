// What the admin API takes and answers, made of its description. Amounts are texts in answers,
// as api.js reads them.

export interface Abilities {
  reasoning?: boolean;
  structured?: boolean;
  tools?: boolean;
  vision?: boolean;
}

export interface Affinity {
  on: boolean;
  stays_with?: string;
  thread?: string;
}

export interface Arrival {
  address: string;
  agent?: string;
  clients: string[];
  code?: string;
  error?: string;
  first_byte_ms?: number;
  key?: string;
  key_prefix?: string;
  message?: string;
  method: string;
  model?: string;
  operation?: string;
  path: string;
  recorded: boolean;
  request_id: string;
  status?: number;
  stream: boolean;
  time: string;
  times: number;
  total_ms?: number;
  under_way?: boolean;
}

export interface Arrivals {
  arrivals: Arrival[];
  gateways: number;
  note?: string;
  now: string;
}

export interface Budget {
  amount: string;
  held?: string;
  left?: string;
  period: 'day' | 'week' | 'month' | 'total';
  renews?: string;
  soft?: boolean;
  spent?: string;
  zone?: string;
}

export interface Call {
  account?: string;
  bytes_in: number;
  bytes_out: number;
  cache_miss?: string;
  cache_read_tokens: number;
  cache_write_1h_tokens: number;
  cache_write_tokens: number;
  charge_usd: string;
  cost_usd: string | null;
  error?: string;
  estimated: boolean;
  first_byte_ms: number;
  input_audio_tokens: number;
  input_tokens: number;
  key: string;
  key_name?: string;
  model: string;
  notes?: string[];
  operation: string;
  output_audio_tokens: number;
  output_image_tokens: number;
  output_tokens: number;
  provider: string;
  reasoning_tokens: number;
  request_id: string;
  searches: number;
  service?: string;
  status: number;
  steps?: Step[];
  stream: boolean;
  tags?: string[];
  team?: string;
  team_name?: string;
  time: string;
  total_ms: number;
  total_tokens: number;
  upstream_model: string;
}

export interface CallDetails {
  account?: string;
  bytes_in: number;
  bytes_out: number;
  cache_miss?: string;
  cache_read_tokens: number;
  cache_write_1h_tokens: number;
  cache_write_tokens: number;
  charge_usd: string;
  cost_parts?: Part[];
  cost_usd: string | null;
  error?: string;
  estimated: boolean;
  first_byte_ms: number;
  input_audio_tokens: number;
  input_tokens: number;
  key: string;
  key_name?: string;
  model: string;
  notes?: string[];
  operation: string;
  output_audio_tokens: number;
  output_image_tokens: number;
  output_tokens: number;
  provider: string;
  reasoning_tokens: number;
  request_id: string;
  searches: number;
  service?: string;
  status: number;
  steps?: Step[];
  stream: boolean;
  tags?: string[];
  team?: string;
  team_name?: string;
  time: string;
  total_ms: number;
  total_tokens: number;
  upstream_model: string;
}

export interface Calls {
  calls: Call[];
  next?: string;
}

export interface Change {
  from?: string;
  id: string;
  members?: string[];
  object?: string;
  operation: string;
  status?: number;
  time: string;
  times?: number;
  via: 'password' | 'session' | 'token' | 'socket' | 'directory';
  who: string;
}

export interface Changes {
  changes: Change[];
  next?: string;
}

export interface Check {
  text?: string;
}

export interface Checked {
  diff: string;
  ok: boolean;
  problems: Problem[];
}

export interface Client {
  by_hand?: string[];
  file: string;
  name: string;
  text: string;
  title: string;
  variable?: string;
}

export interface ClientList {
  clients: Client[];
  key_place: string;
}

export interface DatedPrice {
  since?: string;
  source?: string;
  usd_per_million_tokens?: Prices;
}

export interface Document {
  document?: any;
  drift?: Drift;
  path?: string;
  source: 'file' | 'store' | 'none';
  text: string;
  version?: number;
}

export interface Done {
  status: string;
}

export interface Drift {
  diff?: string;
  problem?: string;
}

export interface Facts {
  facts: string;
}

export interface Failure {
  error: {
    code: string | null;
    message: string;
    param: string | null;
    problems?: Problem[];
    type: string;
  };
}

export interface Health {
  account: string;
  calls: number;
  conversations: number;
  error_rate: number;
  failed?: string;
  first_token_ms?: number;
  in_flight: number;
  last_error?: string;
  state: 'ok' | 'half-open' | 'cooling';
  target: string;
  until?: string;
}

export interface Key {
  budgets: Budget[];
  created: string;
  expires?: string;
  id: string;
  key?: string;
  last_used?: string;
  limits?: Limits;
  models: string[];
  name: string;
  no_store: boolean;
  operations: string[];
  owner?: string;
  prefix: string;
  replaced_key_until?: string;
  revoked?: string;
  status: 'active' | 'revoked' | 'expired';
  strict: boolean;
  team?: string;
}

export interface KeyChange {
  budgets?: NewBudget[] | null;
  expires?: string | null;
  limits?: Limits | null;
  models?: string[] | null;
  name?: string;
  no_store?: boolean;
  operations?: string[] | null;
  owner?: string;
  prefix?: string;
  strict?: boolean;
  team?: string | null;
}

export interface KeyList {
  keys: Key[];
}

export interface Latency {
  by: string[];
  calls: number;
  first_byte_p50_ms: number;
  first_byte_p95_ms: number;
  groups: LatencyRow[];
  p50_ms: number;
  p95_ms: number;
  whole: boolean;
  zone: string;
}

export interface LatencyRow {
  calls: number;
  day?: string;
  first_byte_p50_ms: number;
  first_byte_p95_ms: number;
  hour?: string;
  key?: string;
  key_name?: string;
  model?: string;
  month?: string;
  p50_ms: number;
  p95_ms: number;
  provider?: string;
  tag?: string;
  team?: string;
  team_name?: string;
  upstream_model?: string;
  week?: string;
}

export interface Limits {
  concurrency?: number;
  rpd?: number;
  rpm?: number;
  tpm?: number;
}

export interface Login {
  link?: string;
  password?: string;
  user?: string;
}

export interface Member {
  id: string;
  name: string;
}

export interface Model {
  abilities: Abilities;
  context?: number;
  health: Health[];
  id: string;
  max_output?: number;
  speaks: string[];
  targets: string[];
  usd_per_million_tokens?: Prices;
  visible_to?: string[];
}

export interface ModelEdit {
  base?: number;
  model: any;
}

export interface ModelList {
  facts: Origin;
  models: Model[];
}

export interface NewAdminToken {
  expires?: string;
  name: string;
  scopes: ('read' | 'keys' | 'config' | 'usage')[];
}

export type NewBudget = {
  amount: number;
  period: 'day' | 'week' | 'month' | 'total';
  soft?: boolean;
  zone?: string;
} | string;

export interface NewKey {
  budgets?: NewBudget[];
  expires?: string;
  limits?: Limits;
  models?: string[];
  name: string;
  no_store?: boolean;
  operations?: string[];
  owner?: string;
  prefix?: string;
  strict?: boolean;
  team?: string;
}

export interface NewOwnPassword {
  new: string;
  old: string;
}

export interface NewPassword {
  password?: string;
}

export interface NewSecret {
  value: string;
}

export interface NewTeam {
  budgets?: NewBudget[];
  limits?: Limits;
  name: string;
  parent?: string;
}

export interface NewTrial {
  model?: string;
}

export interface NewUser {
  name: string;
  password?: string;
  role: 'owner' | 'admin' | 'viewer' | 'member';
  team?: string;
  via?: string;
}

export interface NewVersion {
  base: number;
  note?: string;
  text?: string;
}

export interface Origin {
  date: string;
  source: string;
}

export interface Part {
  cost_usd: string;
  count?: number;
  kind: string;
  usd_per_million?: number;
}

export interface Password {
  password: string;
}

export interface Person {
  name: string;
  role?: 'owner' | 'admin' | 'viewer' | 'member';
}

export interface Price {
  coming?: DatedPrice[];
  former?: DatedPrice[];
  known: boolean;
  markup_percent: number;
  model: string;
  since?: string;
  source?: string;
  target: string;
  usd_per_million_tokens?: Prices;
}

export interface PriceChange {
  model: string;
  now?: Prices;
  then?: Prices;
  vendor: string;
}

export interface PriceDiff {
  changes: PriceChange[];
  date: string;
  source: string;
}

export interface PriceList {
  facts: Origin;
  prices: Price[];
}

export interface PriceTier {
  cache_read?: number;
  cache_write?: number;
  cache_write_1h?: number;
  input?: number;
  input_audio?: number;
  output?: number;
  output_audio?: number;
  output_image?: number;
  over: number;
  reasoning?: number;
}

export interface Prices {
  batch?: number;
  cache_read?: number;
  cache_write?: number;
  cache_write_1h?: number;
  call?: number;
  flex?: number;
  input?: number;
  input_audio?: number;
  other?: number;
  output?: number;
  output_audio?: number;
  output_image?: number;
  priority?: number;
  reasoning?: number;
  search?: number;
  searched?: number;
  tiers?: PriceTier[];
}

export interface Problem {
  column: number;
  file: string;
  hint?: string;
  line: number;
  message: string;
  snippet?: string;
}

export interface Provider {
  accounts: string[];
  base_url: string;
  error?: string;
  fetched?: string;
  models: number;
  name: string;
  speaks: string[];
  status?: number;
}

export interface ProviderEdit {
  api_key?: string;
  base?: number;
  provider?: any;
}

export interface ProviderList {
  providers: Provider[];
}

export interface Refresh {
  facts?: string;
  undo?: boolean;
}

export interface Refreshed {
  changed: number;
  date: string;
  gone: number;
  models: number;
  new: number;
  prices_changed: number;
  providers?: Provider[];
  source: string;
}

export interface Removal {
  base?: number;
}

export interface Reprice {
  before?: string;
  dry_run?: boolean;
  model?: string;
  since?: string;
  unknown?: boolean;
  until?: string;
}

export interface Repriced {
  changed: number;
  is: string;
  looked: number;
  next?: string;
  unknown: number;
  was: string;
}

export interface Rollback {
  base: number;
  version: number;
}

export interface Rotation {
  overlap?: string;
}

export interface Route {
  body?: any;
  headers?: Record<string, string>;
  key?: string;
  model: string;
  operation?: string;
}

export interface RouteTarget {
  account: string;
  health: Health;
  left_out?: string;
  notes?: string[];
  order?: number;
  refusal?: string;
  target: string;
  unsaid?: string;
  would_send?: string;
}

export interface Routed {
  affinity: Affinity;
  model: string;
  refused?: string;
  strategy: 'weighted' | 'ordered' | 'latency' | 'busy' | 'price';
  targets: RouteTarget[];
}

export interface Secret {
  name: string;
  updated: string;
  used: boolean;
}

export interface SecretList {
  secrets: Secret[];
}

export interface Session {
  agent?: string;
  created: string;
  current: boolean;
  ends: string;
  from?: string;
  id: string;
  seen: string;
  user: string;
}

export interface SessionList {
  sessions: Session[];
}

export interface Sign {
  name: string;
}

export interface Status {
  local_url?: string;
  usage_records_pending: number;
  version: string;
}

export interface Step {
  account: string;
  at_ms: number;
  result: string;
  target: string;
  took_ms?: number;
  tried: boolean;
}

export interface Team {
  budgets: Budget[];
  created: string;
  id: string;
  keys?: Member[];
  limits?: Limits;
  name: string;
  parent?: string;
  teams?: Member[];
}

export interface TeamChange {
  budgets?: NewBudget[] | null;
  limits?: Limits | null;
  name?: string;
  parent?: string | null;
}

export interface TeamList {
  teams: Team[];
}

export interface Token {
  created: string;
  created_by: string;
  expired?: boolean;
  expires?: string;
  id: string;
  name: string;
  scopes: ('read' | 'keys' | 'config' | 'usage')[];
  token?: string;
}

export interface TokenList {
  tokens: Token[];
}

export interface Trial {
  answer?: string;
  error?: string;
  first_token_ms?: number;
  model?: string;
  ok: boolean;
  status?: number;
  total_ms?: number;
}

export interface Usage {
  by: ('hour' | 'day' | 'week' | 'month' | 'key' | 'team' | 'model' | 'provider' | 'upstream_model' | 'tag')[];
  bytes_in: number;
  bytes_out: number;
  cache_read_tokens: number;
  cache_write_1h_tokens: number;
  cache_write_tokens: number;
  calls: number;
  charge_usd: string;
  cost_usd: string;
  estimated: number;
  failed: number;
  groups: UsageRow[];
  input_audio_tokens: number;
  input_tokens: number;
  mean_first_byte_ms: number;
  mean_ms: number;
  output_audio_tokens: number;
  output_image_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  searches: number;
  total_tokens: number;
  unpriced: number;
  zone: string;
}

export interface UsageRow {
  bytes_in: number;
  bytes_out: number;
  cache_read_tokens: number;
  cache_write_1h_tokens: number;
  cache_write_tokens: number;
  calls: number;
  charge_usd: string;
  cost_usd: string;
  day?: string;
  estimated: number;
  failed: number;
  hour?: string;
  input_audio_tokens: number;
  input_tokens: number;
  key?: string;
  key_name?: string;
  mean_first_byte_ms: number;
  mean_ms: number;
  model?: string;
  month?: string;
  output_audio_tokens: number;
  output_image_tokens: number;
  output_tokens: number;
  provider?: string;
  reasoning_tokens: number;
  searches: number;
  tag?: string;
  team?: string;
  team_name?: string;
  total_tokens: number;
  unpriced: number;
  upstream_model?: string;
  week?: string;
}

export interface User {
  created?: string;
  id: string;
  last_login?: string;
  name: string;
  password?: string;
  role: 'owner' | 'admin' | 'viewer' | 'member';
  team?: string;
  via: string;
}

export interface UserChange {
  password?: string;
  role?: 'owner' | 'admin' | 'viewer' | 'member';
  team?: string;
}

export interface UserList {
  users: User[];
}

export interface Vendor {
  base_url: string;
  key_env: string[];
  name: string;
  speaks: string[];
  title: string;
}

export interface VendorList {
  vendors: Vendor[];
}

export interface Version {
  at: string;
  by: string;
  current: boolean;
  note?: string;
  version: number;
}

export interface VersionText {
  at: string;
  by: string;
  current: boolean;
  diff: string;
  note?: string;
  text: string;
  version: number;
}

export interface Versions {
  next?: number;
  versions: Version[];
}

export interface WaysIn {
  oidc?: Sign;
  password: boolean;
}

export interface Who {
  user: Person;
}

export interface Written {
  version: number;
}

// What GET answers at a path, with a query or without; any where the path is not known.
export type Answer<Path extends string> = Path extends `${infer Bare}?${string}` ? Told<Bare> : Told<Path>;

type Told<Path extends string> =
  Path extends '/arrivals' ? Arrivals :
  Path extends '/audit' ? Changes :
  Path extends '/calls' ? Calls :
  Path extends '/clients' ? ClientList :
  Path extends '/config' ? Record<string, any> :
  Path extends '/config/document' ? Document :
  Path extends '/config/secrets' ? SecretList :
  Path extends '/config/versions' ? Versions :
  Path extends '/keys' ? KeyList :
  Path extends '/login' ? WaysIn :
  Path extends '/models' ? ModelList :
  Path extends '/openapi.json' ? Record<string, any> :
  Path extends '/prices' ? PriceList :
  Path extends '/providers' ? ProviderList :
  Path extends '/session' ? Who :
  Path extends '/sessions' ? SessionList :
  Path extends '/status' ? Status :
  Path extends '/teams' ? TeamList :
  Path extends '/tokens' ? TokenList :
  Path extends '/usage' ? Usage :
  Path extends '/usage/latency' ? Latency :
  Path extends '/users' ? UserList :
  Path extends '/vendors' ? VendorList :
  Path extends `/calls/${string}` ? CallDetails :
  Path extends `/config/versions/${string}` ? VersionText :
  Path extends `/keys/${string}` ? Key :
  Path extends `/teams/${string}` ? Team :
  any;
