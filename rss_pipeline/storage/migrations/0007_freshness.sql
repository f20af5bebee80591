-- Seconds for which the stored answer said it stays fresh. A 304 that says nothing of it leaves it as it is
-- (RFC 9111 4.3.4): a publisher who asks for 12 hours with the document means them after each 304 as well.
ALTER TABLE feeds ADD COLUMN max_age INTEGER;
