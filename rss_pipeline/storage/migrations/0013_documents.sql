-- The last document, if it was cut off. It is stored as far as it goes, but validators and content_hash stay
-- those of the last whole one: a 304 to its own ETag would hide for ever what was cut off. By its hash the same
-- bytes are recognised, and not parsed and backed up again at every visit.
ALTER TABLE feeds ADD COLUMN cut_hash TEXT;

-- The version of the parsers that failed on failed_hash: a newer one may read that document. NULL, as for
-- documents that failed before there was this column, is no version: they are tried again once.
ALTER TABLE feeds ADD COLUMN failed_version TEXT;
