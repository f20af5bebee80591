-- A hash of the address that asked for the hold: no other feed that leads there requests it before that.
ALTER TABLE feed_holds ADD COLUMN url_hash TEXT;
