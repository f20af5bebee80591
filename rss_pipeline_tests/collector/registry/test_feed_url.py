"""Forms of a feed's URL that are the same request."""

import pytest

from rss_pipeline.collector.registry.feed_url import other_form, same_as


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://a.example/x?y#z", "https://a.example:443/x?y#z"),
        ("https://a.example:443/x", "https://a.example/x"),
        ("http://a.example", "http://a.example:80"),
        ("https://a.example:80/", "HTTPS://a.example:80/"),
        ("http://[2001:db8::80]/", "http://[2001:db8::80]:80/"),
        ("http://nas.lan:8080/x", "HTTP://nas.lan:8080/x"),
    ],
)
def test_a_request_has_another_form_that_is_the_same(url: str, other: str) -> None:
    assert other_form(url) == other
    assert same_as(other) == same_as(url)
    assert other_form(other) == url
