-- What calls cost, who pays for them, and the sums that outlive them. Money is
-- counted in nano-dollars.

ALTER TABLE calls ADD COLUMN team TEXT NOT NULL DEFAULT '';              -- that the key belonged to; '' is none
ALTER TABLE calls ADD COLUMN cache_write_hour BIGINT NOT NULL DEFAULT 0; -- more token counters, disjoint with the others
ALTER TABLE calls ADD COLUMN audio_in BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN audio_out BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN image_out BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN searches BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN service TEXT NOT NULL DEFAULT '';           -- '' is the usual one
ALTER TABLE calls ADD COLUMN priced BOOLEAN NOT NULL DEFAULT FALSE;      -- the cost is known
ALTER TABLE calls ADD COLUMN cost BIGINT NOT NULL DEFAULT 0;             -- what the vendor takes
ALTER TABLE calls ADD COLUMN charge BIGINT NOT NULL DEFAULT 0;           -- what budgets pay
ALTER TABLE calls ADD COLUMN tags TEXT NOT NULL DEFAULT '';              -- name=value, one a line

CREATE TABLE teams (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    parent     TEXT NOT NULL,   -- '' is none
    budgets    TEXT NOT NULL,   -- JSON array
    limits     TEXT NOT NULL,   -- JSON object
    created_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX teams_by_name ON teams (name);

ALTER TABLE keys ADD COLUMN team TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN budgets TEXT NOT NULL DEFAULT '[]';
ALTER TABLE keys ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';

-- What was spent of a budget in a window of time, and what gateways have taken
-- of it to spend: spent and leased are never more than its limit.
CREATE TABLE balances (
    owner     TEXT NOT NULL,   -- a key or a team
    period    TEXT NOT NULL,   -- total, or day, week, month with a zone behind @
    window_ms BIGINT NOT NULL, -- when it begins; 0 where the period is total
    spent     BIGINT NOT NULL,
    leased    BIGINT NOT NULL, -- the sum of its rows in leases
    alerted   BIGINT NOT NULL, -- the greatest amount that was alerted of
    PRIMARY KEY (owner, period, window_ms)
);

CREATE TABLE leases (
    holder      TEXT NOT NULL,   -- a gateway, from its start to its end
    owner       TEXT NOT NULL,
    period      TEXT NOT NULL,
    window_ms   BIGINT NOT NULL,
    amount      BIGINT NOT NULL, -- that the holder may have spent, and has not told of yet
    interrupted BIGINT NOT NULL, -- counted as spent when nothing was heard of it for long; it may tell otherwise later
    PRIMARY KEY (holder, owner, period, window_ms)
);

-- Gateways that share the database, as they were last heard of. Leases last as
-- long as something is heard of their holder.
CREATE TABLE nodes (
    id      TEXT PRIMARY KEY,
    seen_ms BIGINT NOT NULL
);

-- The newest calls of a key, of a model, of both, and those that failed.
CREATE INDEX calls_by_key ON calls (key_id, id, model);
CREATE INDEX calls_by_model ON calls (model, id);
CREATE INDEX calls_failed ON calls (id) WHERE error <> '';

-- Sums of calls by the hour, and by the day of UTC, in which they began. Rows
-- with a tag are part of those without.
CREATE TABLE usage_hours (
    begin_ms         BIGINT NOT NULL,
    tag              TEXT NOT NULL,   -- name=value; '' is all calls
    key_id           TEXT NOT NULL,
    team             TEXT NOT NULL,
    model            TEXT NOT NULL,
    provider         TEXT NOT NULL,
    upstream_model   TEXT NOT NULL,
    calls            BIGINT NOT NULL,
    failed           BIGINT NOT NULL,
    estimated        BIGINT NOT NULL, -- calls whose usage is an estimate
    unpriced         BIGINT NOT NULL, -- calls whose cost is not known
    input            BIGINT NOT NULL,
    cache_read       BIGINT NOT NULL,
    cache_write      BIGINT NOT NULL,
    cache_write_hour BIGINT NOT NULL,
    audio_in         BIGINT NOT NULL,
    output           BIGINT NOT NULL,
    reasoning        BIGINT NOT NULL,
    audio_out        BIGINT NOT NULL,
    image_out        BIGINT NOT NULL,
    searches         BIGINT NOT NULL,
    cost             BIGINT NOT NULL,
    charge           BIGINT NOT NULL,
    bytes_in         BIGINT NOT NULL,
    bytes_out        BIGINT NOT NULL,
    total_us         BIGINT NOT NULL,
    begun            BIGINT NOT NULL, -- calls that had a first byte
    first_byte_us    BIGINT NOT NULL, -- of those
    PRIMARY KEY (begin_ms, tag, key_id, team, model, provider, upstream_model)
);
CREATE TABLE usage_days (
    begin_ms         BIGINT NOT NULL,
    tag              TEXT NOT NULL,
    key_id           TEXT NOT NULL,
    team             TEXT NOT NULL,
    model            TEXT NOT NULL,
    provider         TEXT NOT NULL,
    upstream_model   TEXT NOT NULL,
    calls            BIGINT NOT NULL,
    failed           BIGINT NOT NULL,
    estimated        BIGINT NOT NULL,
    unpriced         BIGINT NOT NULL,
    input            BIGINT NOT NULL,
    cache_read       BIGINT NOT NULL,
    cache_write      BIGINT NOT NULL,
    cache_write_hour BIGINT NOT NULL,
    audio_in         BIGINT NOT NULL,
    output           BIGINT NOT NULL,
    reasoning        BIGINT NOT NULL,
    audio_out        BIGINT NOT NULL,
    image_out        BIGINT NOT NULL,
    searches         BIGINT NOT NULL,
    cost             BIGINT NOT NULL,
    charge           BIGINT NOT NULL,
    bytes_in         BIGINT NOT NULL,
    bytes_out        BIGINT NOT NULL,
    total_us         BIGINT NOT NULL,
    begun            BIGINT NOT NULL,
    first_byte_us    BIGINT NOT NULL,
    PRIMARY KEY (begin_ms, tag, key_id, team, model, provider, upstream_model)
);
INSERT INTO usage_hours
    SELECT started_ms / 3600000 * 3600000, '', key_id, '', model, provider, upstream_model,
        COUNT(*), SUM(CASE WHEN error <> '' THEN 1 ELSE 0 END), SUM(CASE WHEN estimated THEN 1 ELSE 0 END), COUNT(*),
        SUM(input), SUM(cache_read), SUM(cache_write), 0, 0, SUM(output), SUM(reasoning), 0, 0, 0, 0, 0,
        SUM(bytes_in), SUM(bytes_out), SUM(total_us), SUM(CASE WHEN first_byte_us > 0 THEN 1 ELSE 0 END), SUM(first_byte_us)
    FROM calls GROUP BY 1, 3, 5, 6, 7;
INSERT INTO usage_days
    SELECT begin_ms / 86400000 * 86400000, tag, key_id, team, model, provider, upstream_model,
        SUM(calls), SUM(failed), SUM(estimated), SUM(unpriced),
        SUM(input), SUM(cache_read), SUM(cache_write), 0, 0, SUM(output), SUM(reasoning), 0, 0, 0, 0, 0,
        SUM(bytes_in), SUM(bytes_out), SUM(total_us), SUM(begun), SUM(first_byte_us)
    FROM usage_hours GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- What vendors took, from when on, as this gateway came to know it.
CREATE TABLE prices (
    provider TEXT NOT NULL,   -- the vendor
    model    TEXT NOT NULL,   -- as it calls it
    since_ms BIGINT NOT NULL, -- 0 is the beginning of time
    list     TEXT NOT NULL,   -- JSON; {} is not known
    source   TEXT NOT NULL,   -- who said so
    PRIMARY KEY (provider, model, since_ms)
);
