-- A story is made once for all. What a user sees of it is made of the members in their own feeds: each stores the earlier ones
-- with which it stands by itself. `ordinal` is the order of the decisions, so that no two follow each other after one of them
-- went and came again. Members from before have NULL and 0: the one that they are most like is their only join.
ALTER TABLE story_members ADD COLUMN joins TEXT;
ALTER TABLE story_members ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;
