-- The selector of the stream in feeds.yaml, as the last sync wrote it; NULL once the stream is no longer there, until
-- its rows are deleted. Where selector_hash is another one, not all stored items were judged by it. A visit or a
-- process that judged by an older selector sees here that its result is void.
ALTER TABLE streams ADD COLUMN registered_hash TEXT;

-- Each publication looks for such streams, and mostly there are none.
CREATE INDEX streams_unjudged ON streams (feed_id)
  WHERE registered_hash IS NULL OR selector_hash IS NOT registered_hash;
