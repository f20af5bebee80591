-- Rows as the code before schema 0009 wrote them: a run was killed while it had feed f1; f4, f5 and f6 were put
-- off by an outage of our own network; `bad` keeps failing; `later` and its host asked for a pause; an image of f4
-- is archived, another one was not found at its first attempt. PORT stands for the test's server.

INSERT INTO feeds (
  id, url, last_fetched_at, consecutive_failures, next_fetch_at, created_at, host, allow_private,
  last_visited_at, last_error_kind, last_error, host_answered, schedule_reason
) VALUES (
  'bad', 'http://127.0.5.8:PORT/f/bad', '2026-11-22T03:35:06Z', 3, '2026-11-22T05:35:07Z', '2026-11-22T03:33:16Z',
  '127.0.5.8', 1, '2026-11-22T03:35:06Z', 'http_status',
  '500 Internal Server Error: the server has a fault of its own; it is asked again later.', 1,
  'failure 3 in a row (http_status): 2 h'
);
INSERT INTO feeds (
  id, url, title, last_etag, last_fetched_at, next_fetch_at, created_at, host, allow_private, link,
  validators_url, content_hash, charset, rhythm, skip_hours, skip_days, last_visited_at, last_success_at,
  last_body_at, host_answered, schedule_reason, change_count, changed_at, last_change, items_version,
  reported_count, reported_at, lease_token, unclosed_claims, items_listed, planned_at
) VALUES (
  'f1', 'http://127.0.5.1:PORT/f/f1', 'Feed f1', '"f15"', '2026-11-22T03:35:08Z', '2026-01-01T00:00:00Z',
  '2026-11-22T03:33:16Z', '127.0.5.1', 1, 'http://example.com/', 'http://127.0.5.1:PORT/f/f1',
  'd9c30909f733115060df69dfad62e4a883f0c14cd2f33221c7b41f366b9ed5f7', 'utf-8',
  '["2026-11-21T04:00:00Z","2026-11-21T03:00:00Z","2026-11-21T02:00:00Z","2026-11-21T01:00:00Z","2026-11-21T00:00:00Z"]',
  '[]', '[]', '2026-11-22T03:35:08Z', '2026-11-22T03:35:08Z', '2026-11-22T03:35:06Z', 1,
  'auto: 5 items in 27 h 35 min; by their hours 0.15 more are expected in 19 min; spread +1.8 %', 3,
  '2026-11-22T03:35:08Z',
  '{"items_seen":5,"duplicate_guids":0,"body_bytes":1379,"fetch_ms":99,"http_status":200,"charset":"utf-8 (utf-8)","format":"rss20","backup_key":"backups/f1/2026-11-22T03:35:06Z.xml","items_new":1}',
  '2026-11-22T03:35:08Z/3', 3, '2026-11-22T03:35:10Z', 'f37c7ec52acd161baaef15417032d8d6', 1, 5,
  '2026-11-22T03:54:23Z'
);
INSERT INTO feeds (
  id, url, title, last_etag, last_fetched_at, next_fetch_at, created_at, host, allow_private, link,
  validators_url, content_hash, charset, rhythm, skip_hours, skip_days, last_visited_at, last_success_at,
  last_body_at, host_answered, schedule_reason, change_count, changed_at, last_change, items_version,
  reported_count, reported_at, items_listed, planned_at
) VALUES (
  'f4', 'http://127.0.5.4:PORT/f/f4', 'Feed f4', '"f45"', '2026-11-22T03:35:08Z', '2026-11-22T03:42:02Z',
  '2026-11-22T03:33:16Z', '127.0.5.4', 1, 'http://example.com/', 'http://127.0.5.4:PORT/f/f4',
  '54785e6707bb9a3ff1073e6f336480380fe3103b1cbfe44f001fff4d4a7ed35e', 'utf-8',
  '["2026-11-21T04:00:00Z","2026-11-21T03:00:00Z","2026-11-21T02:00:00Z","2026-11-21T01:00:00Z","2026-11-21T00:00:00Z"]',
  '[]', '[]', '2026-11-22T03:35:08Z', '2026-11-22T03:35:08Z', '2026-11-22T03:35:06Z', 1,
  'our network was down: 5 min', 3, '2026-11-22T03:35:08Z',
  '{"items_seen":5,"duplicate_guids":0,"body_bytes":1379,"fetch_ms":104,"http_status":200,"charset":"utf-8 (utf-8)","format":"rss20","backup_key":"backups/f4/2026-11-22T03:35:06Z.xml","items_new":1}',
  '2026-11-22T03:35:08Z/3', 3, '2026-11-22T03:35:10Z', 5, '2026-11-22T03:53:56Z'
);
INSERT INTO feeds (
  id, url, title, last_etag, last_fetched_at, next_fetch_at, created_at, host, allow_private, link,
  validators_url, content_hash, charset, rhythm, skip_hours, skip_days, last_visited_at, last_success_at,
  last_body_at, host_answered, schedule_reason, change_count, changed_at, last_change, items_version,
  reported_count, reported_at, items_listed, planned_at
) VALUES (
  'f5', 'http://127.0.5.5:PORT/f/f5', 'Feed f5', '"f55"', '2026-11-22T03:35:08Z', '2026-11-22T03:42:02Z',
  '2026-11-22T03:33:16Z', '127.0.5.5', 1, 'http://example.com/', 'http://127.0.5.5:PORT/f/f5',
  '96e7dd59af0b745702761e7c7de62986a83726576b6bed1521d68f93d632bcd1', 'utf-8',
  '["2026-11-21T04:00:00Z","2026-11-21T03:00:00Z","2026-11-21T02:00:00Z","2026-11-21T01:00:00Z","2026-11-21T00:00:00Z"]',
  '[]', '[]', '2026-11-22T03:35:08Z', '2026-11-22T03:35:08Z', '2026-11-22T03:35:06Z', 1,
  'our network was down: 5 min', 3, '2026-11-22T03:35:08Z',
  '{"items_seen":5,"duplicate_guids":0,"body_bytes":1379,"fetch_ms":54,"http_status":200,"charset":"utf-8 (utf-8)","format":"rss20","backup_key":"backups/f5/2026-11-22T03:35:06Z.xml","items_new":1}',
  '2026-11-22T03:35:08Z/3', 3, '2026-11-22T03:35:10Z', 5, '2026-11-22T03:54:29Z'
);
INSERT INTO feeds (
  id, url, title, last_etag, last_fetched_at, next_fetch_at, created_at, host, allow_private, link,
  validators_url, content_hash, charset, rhythm, skip_hours, skip_days, last_visited_at, last_success_at,
  last_body_at, host_answered, schedule_reason, change_count, changed_at, last_change, items_version,
  reported_count, reported_at, items_listed, planned_at
) VALUES (
  'f6', 'http://127.0.5.6:PORT/f/f6', 'Feed f6', '"f65"', '2026-11-22T03:35:08Z', '2026-11-22T03:42:02Z',
  '2026-11-22T03:33:16Z', '127.0.5.6', 1, 'http://example.com/', 'http://127.0.5.6:PORT/f/f6',
  '826b99dbcb7cdd54faad8bf978ee769f06b3afa6a1e807201e8172d1b52f0e6c', 'utf-8',
  '["2026-11-21T04:00:00Z","2026-11-21T03:00:00Z","2026-11-21T02:00:00Z","2026-11-21T01:00:00Z","2026-11-21T00:00:00Z"]',
  '[]', '[]', '2026-11-22T03:35:08Z', '2026-11-22T03:35:08Z', '2026-11-22T03:35:06Z', 1,
  'our network was down: 5 min', 3, '2026-11-22T03:35:08Z',
  '{"items_seen":5,"duplicate_guids":0,"body_bytes":1379,"fetch_ms":59,"http_status":200,"charset":"utf-8 (utf-8)","format":"rss20","backup_key":"backups/f6/2026-11-22T03:35:06Z.xml","items_new":1}',
  '2026-11-22T03:35:08Z/3', 3, '2026-11-22T03:35:10Z', 5, '2026-11-22T03:53:38Z'
);
INSERT INTO feeds (
  id, url, last_fetched_at, consecutive_failures, next_fetch_at, created_at, host, allow_private,
  last_visited_at, last_error_kind, last_error, host_answered, schedule_reason
) VALUES (
  'later', 'http://127.0.5.10:PORT/f/later', '2026-11-22T03:33:20Z', 1, '2026-11-22T04:23:21Z',
  '2026-11-22T03:33:16Z', '127.0.5.10', 1, '2026-11-22T03:33:20Z', 'rate_limited',
  '429 Too Many Requests: the server asks for fewer requests; it asks us to stay away for 3,000 s.', 1,
  'failure 1 in a row (rate_limited): 30 min; the server asks Retry-After 50 min'
);
INSERT INTO hosts (
  host, hold_until, reason
) VALUES (
  '127.0.5.10', '2026-11-22T04:23:21Z', '429 Too Many Requests with Retry-After 50 min: held for 50 min'
);
INSERT INTO feed_holds (
  feed_id, host, hold_until, reason
) VALUES (
  'later', '127.0.5.10', '2026-11-22T04:23:21Z', '429 Too Many Requests with Retry-After 50 min'
);
INSERT INTO items (
  id, feed_id, guid, link, title, pub_date, content_html, created_at, guid_source, pub_date_source,
  pub_date_raw, backup_key, images_extracted_at, arrived
) VALUES (
  '83fb5add63fb15ad7f9553d62c9f7326', 'f4', 'f4-0', 'http://example.com/f4/0', 'T f4 0', '2026-11-21T00:00:00Z',
  '<p>x 0</p><img src=''http://127.0.5.99:PORT/pic/f4-0.png''>', '2026-11-22T03:33:20Z', 'guid', 'feed',
  'Sat, 21 Nov 2026 00:00:00 GMT', 'backups/f4/2026-11-22T03:33:20Z.xml', '2026-11-22T03:33:23Z', 1795318403000007
);
INSERT INTO items (
  id, feed_id, guid, link, title, pub_date, content_html, created_at, guid_source, pub_date_source,
  pub_date_raw, backup_key, images_extracted_at, arrived
) VALUES (
  '7b228794d09a551629317fb46c87a505', 'f4', 'f4-1', 'http://example.com/f4/1', 'T f4 1', '2026-11-21T01:00:00Z',
  '<p>x 1</p><img src=''http://127.0.5.99:PORT/pic/f4-1.png''>', '2026-11-22T03:33:20Z', 'guid', 'feed',
  'Sat, 21 Nov 2026 01:00:00 GMT', 'backups/f4/2026-11-22T03:33:20Z.xml', '2026-11-22T03:33:23Z', 1795318403000008
);
INSERT INTO image_tasks (
  id, item_id, original_url, attempts, last_error, created_at, updated_at, host, position, next_attempt_at
) VALUES (
  '28d3d2b48bc1894fb886753b7fcf8d35', '7b228794d09a551629317fb46c87a505', 'http://127.0.5.99:PORT/pic/f4-1.png',
  1, '404 Not Found: the image is not, or no longer, at its address.', '2026-11-22T03:33:23Z',
  '2026-11-22T03:36:09Z', '127.0.5.99', 0, '2026-11-22T04:36:09Z'
);
INSERT INTO image_tasks (
  id, item_id, original_url, r2_key, status, created_at, updated_at, host, position, bytes
) VALUES (
  '1fcfd7d9484e7057a181e7de77e37564', '83fb5add63fb15ad7f9553d62c9f7326', 'http://127.0.5.99:PORT/pic/f4-0.png',
  'images/f4/9ed00105/0.png', 'success', '2026-11-22T03:33:23Z', '2026-11-22T03:36:09Z', '127.0.5.99', 0, 67
);
INSERT INTO sequences (
  name, value
) VALUES (
  'items', 1795318508000045
);
INSERT INTO leases (
  token, run_id, expires_at, feeds, hosts
) VALUES (
  'f37c7ec52acd161baaef15417032d8d6', '19517863-574c-4c7c-b909-c5daaf9ff558', '2026-11-22T05:37:24Z',
  '["f1"]', '["127.0.5.1"]'
);
