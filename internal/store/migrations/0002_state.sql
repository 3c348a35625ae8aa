-- Stored responses and conversations. Bodies are sealed before they come here.
-- The owner, a key's ID, begins every primary key: nobody finds another's rows.
--
-- A thread is a line of items, numbered from 1. It may begin at another: the
-- first base_length items of its base are its own first ones, and its rows in
-- items have the numbers after them. It stays as long as a response stands on
-- it, a thread begins at it, or a conversation has its name.

CREATE TABLE threads (
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,    -- of the conversation, or of the response that began it
    base        TEXT NOT NULL,    -- '' is none
    base_length BIGINT NOT NULL,
    length      BIGINT NOT NULL,  -- number of the last item, those of the base counted
    closed      BOOLEAN NOT NULL, -- turns only fork from it: a conversation, or one whose end was cut off
    untidy      BOOLEAN NOT NULL, -- something that needed it is gone: look which items may go
    bytes       BIGINT NOT NULL,  -- of the bodies of its rows in items
    PRIMARY KEY (owner, id)       -- one thread; each step down a chain of bases
);
CREATE INDEX threads_by_base ON threads (owner, base, base_length); -- what the forks of a thread need
CREATE INDEX threads_untidy ON threads (owner, id) WHERE untidy;    -- the sweep: what is to be looked at
CREATE INDEX threads_by_bytes ON threads (bytes);                   -- the sweep: the sum, from the index alone

CREATE TABLE items (
    owner      TEXT NOT NULL,
    thread     TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    id         TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    body       BYTEA NOT NULL,
    PRIMARY KEY (owner, thread, seq) -- ranges of a thread, up and down
);
CREATE INDEX items_by_id ON items (owner, id, created_ms, thread, seq); -- items by ID, the newest of each; cursors

CREATE TABLE responses (
    owner        TEXT NOT NULL,
    id           TEXT NOT NULL,
    thread       TEXT NOT NULL,   -- '' is none: the provider has it, or a run that has not ended
    conversation TEXT NOT NULL,   -- '' is none
    from_item    BIGINT NOT NULL, -- its input is (from_item, inputs], its output (inputs, length]
    inputs       BIGINT NOT NULL,
    length       BIGINT NOT NULL,
    status       TEXT NOT NULL,
    provider     TEXT NOT NULL,   -- '' unless the upstream keeps the state
    runner       TEXT NOT NULL,   -- '' unless a run goes on
    touched_ms   BIGINT NOT NULL, -- when the runner was last heard of
    created_ms   BIGINT NOT NULL,
    expires_ms   BIGINT NOT NULL, -- 0 is never
    bytes        BIGINT NOT NULL, -- of its body and its events
    body         BYTEA NOT NULL,
    PRIMARY KEY (owner, id)       -- one response
);
CREATE INDEX responses_by_thread ON responses (owner, thread, length);            -- what the responses on a thread need
CREATE INDEX responses_by_expiry ON responses (expires_ms, bytes);                -- the sweep: what is over; the sum, from the index alone
CREATE INDEX responses_by_age ON responses (created_ms) WHERE provider = '';      -- the sweep: the oldest
CREATE INDEX responses_running ON responses (touched_ms) WHERE runner <> '';      -- runs whose runner is gone

CREATE TABLE response_events (
    owner    TEXT NOT NULL,
    response TEXT NOT NULL,
    first    BIGINT NOT NULL,              -- number of the first event in it
    body     BYTEA NOT NULL,
    PRIMARY KEY (owner, response, first)   -- the events of a response from a number on
);

CREATE TABLE conversations (
    owner         TEXT NOT NULL,
    id            TEXT NOT NULL,   -- its thread has the same
    created_ms    BIGINT NOT NULL,
    expires_ms    BIGINT NOT NULL, -- 0 is never
    touched_ms    BIGINT NOT NULL, -- when what stands in it last was made
    metadata      TEXT NOT NULL,   -- sealed
    lock_holder   TEXT NOT NULL,   -- '' is not locked
    lock_until_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, id)        -- one conversation
);
CREATE INDEX conversations_by_expiry ON conversations (expires_ms); -- the sweep: what is over
CREATE INDEX conversations_by_age ON conversations (touched_ms);    -- the sweep: the oldest
CREATE INDEX conversations_by_lock ON conversations (lock_until_ms) WHERE lock_until_ms > 0; -- a start: those that a process before held
