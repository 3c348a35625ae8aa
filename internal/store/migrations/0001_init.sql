-- The same statements serve SQLite and Postgres: TEXT ids made in Go, BIGINT
-- for times, JSON as TEXT, no defaults that differ between engines.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE keys (
    id             TEXT PRIMARY KEY, -- the public part of the key
    name           TEXT NOT NULL,
    owner          TEXT NOT NULL,
    prefix         TEXT NOT NULL,
    hash           TEXT NOT NULL,    -- SHA-256 of the whole key, hex
    old_hash       TEXT NOT NULL,    -- of the key that rotation replaced
    old_until_ms   BIGINT NOT NULL,  -- until when the replaced key opens
    models         TEXT NOT NULL,    -- JSON array of patterns; [] is all
    operations     TEXT NOT NULL,    -- JSON array of names; [] is all
    strict         BOOLEAN NOT NULL, -- calls that cannot be said as written are refused
    no_store       BOOLEAN NOT NULL, -- no response of it is kept
    created_ms     BIGINT NOT NULL,
    expires_ms     BIGINT NOT NULL,  -- 0 is never
    revoked_ms     BIGINT NOT NULL,  -- 0 is not revoked
    last_used_ms   BIGINT NOT NULL
);

CREATE TABLE calls (
    id             TEXT PRIMARY KEY, -- UUIDv7 in hex: sorts by time
    key_id         TEXT NOT NULL,
    operation      TEXT NOT NULL,
    model          TEXT NOT NULL,    -- as the client asked
    provider       TEXT NOT NULL,
    upstream_model TEXT NOT NULL,
    stream         BOOLEAN NOT NULL,
    status         BIGINT NOT NULL,  -- HTTP status of the outcome
    error          TEXT NOT NULL,    -- error code; '' when the call ended well
    started_ms     BIGINT NOT NULL,
    first_byte_us  BIGINT NOT NULL,  -- 0: there was none
    total_us       BIGINT NOT NULL,
    bytes_in       BIGINT NOT NULL,
    bytes_out      BIGINT NOT NULL,
    input          BIGINT NOT NULL,  -- token counters, disjoint
    cache_read     BIGINT NOT NULL,
    cache_write    BIGINT NOT NULL,
    output         BIGINT NOT NULL,
    reasoning      BIGINT NOT NULL,
    estimated      BOOLEAN NOT NULL,
    notes          TEXT NOT NULL     -- of translation, comma-separated; '' is none
);

CREATE TABLE model_lists (
    provider   TEXT PRIMARY KEY,
    fetched_ms BIGINT NOT NULL,
    body       TEXT NOT NULL         -- the last good list, as decoded
);
