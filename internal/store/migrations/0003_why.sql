-- How a call came to its answer: which of a provider's credentials served it,
-- what else was considered or tried, and why nothing came from a cache.

ALTER TABLE calls ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN steps TEXT NOT NULL DEFAULT '';      -- JSON; '' when the first target answered and no other was considered
ALTER TABLE calls ADD COLUMN cache_miss TEXT NOT NULL DEFAULT ''; -- why a read from the prompt cache, which was expected, did not come
