-- People who log in by single sign-on.
ALTER TABLE users ADD COLUMN via TEXT NOT NULL DEFAULT 'password'; -- or 'oidc': how they log in
ALTER TABLE users ADD COLUMN issuer TEXT NOT NULL DEFAULT '';      -- with subject, who they are there; '' is nobody yet
ALTER TABLE users ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN mapped BOOLEAN NOT NULL DEFAULT FALSE;  -- the role is the provider's to give
CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject) WHERE subject <> '';
