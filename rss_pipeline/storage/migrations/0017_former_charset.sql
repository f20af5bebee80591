-- The codec that decoded the feed before `charset`, if it was another one. Guids, links and titles beyond ASCII read
-- otherwise by it: the items that it stored are looked for under what it read, and do not come again. The last such
-- codec is enough: most feeds never have a second one.
ALTER TABLE feeds ADD COLUMN former_charset TEXT;
