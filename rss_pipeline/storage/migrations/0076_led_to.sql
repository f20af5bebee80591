-- A redirect with Retry-After asks to wait before it is followed: where it leads is kept until then, for to request the redirect
-- once more would be to wait for ever.
ALTER TABLE feeds ADD COLUMN led_to TEXT;
