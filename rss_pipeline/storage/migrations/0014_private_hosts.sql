-- The hosts and networks that a feed's `allow_private` names besides its own host, as a JSON list; NULL for none.
-- allow_private stays a flag: 1 opens the host of the feed's registered URL. Images need both at their claim, which
-- reads no feeds.yaml.
ALTER TABLE feeds ADD COLUMN private_hosts TEXT;
