-- Who uses the admin API, and what they changed.

-- People. The owner named admin is none of them: its password is a setting.
CREATE TABLE users (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    team       TEXT NOT NULL,   -- of a member; '' is none
    hash       TEXT NOT NULL,   -- argon2id of the password
    created_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_by_name ON users (name);

-- Who is logged in.
CREATE TABLE sessions (
    id         TEXT PRIMARY KEY, -- the public part of the cookie
    hash       TEXT NOT NULL,    -- SHA-256 of the whole cookie, hex
    user_id    TEXT NOT NULL,    -- of the user; 'admin' is the owner of that name
    address    TEXT NOT NULL,    -- where they logged in from
    agent      TEXT NOT NULL,    -- by which browser
    created_ms BIGINT NOT NULL,
    seen_ms    BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);

-- Tokens for programs.
CREATE TABLE admin_tokens (
    id         TEXT PRIMARY KEY, -- the public part of the token
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL,    -- SHA-256 of the whole token, hex
    scopes     TEXT NOT NULL,    -- JSON array
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL   -- 0 is never
);
CREATE UNIQUE INDEX admin_tokens_by_name ON admin_tokens (name);

-- Every change by the admin API. A row is written before its change is made,
-- and gets its status after that.
CREATE TABLE audit (
    id        TEXT PRIMARY KEY, -- sorts by time
    at_ms     BIGINT NOT NULL,
    who       TEXT NOT NULL,
    via       TEXT NOT NULL,    -- how it was known who that is
    address   TEXT NOT NULL,    -- '' is this machine
    operation TEXT NOT NULL,
    object    TEXT NOT NULL,    -- what it was done to; '' where that is the gateway
    members   TEXT NOT NULL,    -- that were said, without their values
    status    BIGINT NOT NULL   -- HTTP status of the outcome; 0: not known
);
