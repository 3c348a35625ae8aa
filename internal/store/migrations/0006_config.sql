-- The configuration, where no file holds it.

-- Its versions. The newest counts.
CREATE TABLE config_versions (
    version BIGINT PRIMARY KEY, -- from 1
    at_ms   BIGINT NOT NULL,
    author  TEXT NOT NULL,
    note    TEXT NOT NULL,
    text    TEXT NOT NULL       -- YAML, with references in the place of secrets
);

-- What ${secret:NAME} stands for.
CREATE TABLE config_secrets (
    name       TEXT PRIMARY KEY,
    sealed     TEXT NOT NULL,   -- base64; the key lies beside the database
    updated_ms BIGINT NOT NULL
);
