"""What people who read do with their feeds and items: each act once, for all doors (rss_pipeline/api)."""
