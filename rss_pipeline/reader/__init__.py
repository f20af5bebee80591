"""The acts of people who read: each once, for all doors (rss_pipeline/api)."""
