-- How often somebody tried something that is one row of the audit log.
ALTER TABLE audit ADD COLUMN times BIGINT NOT NULL DEFAULT 1;

-- When people logged in last.
CREATE TABLE last_logins (
    user_id TEXT PRIMARY KEY,
    at_ms   BIGINT NOT NULL
);
