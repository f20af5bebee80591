"""HTML and text of publishers, made safe to be shown."""
