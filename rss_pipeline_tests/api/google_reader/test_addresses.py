"""Which call an address is, with every prefix that people type."""

import pytest

from rss_pipeline.api.google_reader.routes import addresses_of, call_of

LOGIN = "accounts/ClientLogin"
LIST = "reader/api/0/subscription/list"


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/accounts/ClientLogin", LOGIN),
        ("/greader/accounts/ClientLogin", LOGIN),
        ("/greader/reader/api/0/subscription/list", LIST),
        ("/reader/api/0/subscription/list", LIST),
        pytest.param("/greader//accounts/ClientLogin", LOGIN, id="the prefix with a slash at its end"),
        pytest.param("//accounts/ClientLogin", LOGIN, id="the host with two slashes"),
        pytest.param("/api/greader.php/accounts/ClientLogin", LOGIN, id="FreshRSS's prefix"),
        pytest.param("/api/accounts/ClientLogin", LOGIN, id="half of FreshRSS's prefix"),
        pytest.param("/api/greader.php/reader/api/0/subscription/list", LIST, id="FreshRSS's list"),
        pytest.param("/greader/reader/api/0/accounts/ClientLogin", LOGIN, id="what the app appends, typed"),
        pytest.param("/greader/reader/api/0/reader/api/0/subscription/list", LIST, id="typed, and appended"),
        pytest.param("/greader/reader/api/0/subscription/list/", LIST, id="a slash at the end"),
        pytest.param("/greader/reader//api/0/subscription/list", LIST, id="a slash too many"),
        pytest.param("/greader/api/greader.php/accounts/ClientLogin", LOGIN, id="RSS Guard behind ours"),
        pytest.param("/greader//api/greader.php/accounts/ClientLogin", LOGIN, id="typed with a slash"),
        pytest.param("/greader/api/greader.php/reader/api/0/subscription/list", LIST, id="its list"),
        pytest.param("/api/greader.php/api/greader.php/accounts/ClientLogin", LOGIN, id="typed and appended"),
        pytest.param("/greader/greader.php/accounts/ClientLogin", None, id="no prefix of any app"),
        ("/greader/api/greader.php", ""),
        ("/greader", ""),
        ("/greader/", ""),
        ("/api/greader.php", ""),
        ("/greader/check/compatibility", "check/compatibility"),
        ("/reader/atom/feed/a-b", "reader/atom/feed/a-b"),
        pytest.param(
            "/reader/atom/feed/http://a.b/c", "reader/atom/feed/http://a.b/c", id="an address in Atom"
        ),
        pytest.param(
            "/greader/reader/atom/user/-/label/a//b/", "reader/atom/user/-/label/a//b/", id="a label"
        ),
        pytest.param(
            "/reader/api/0/stream/contents/feed/http://a.b//c/",
            "reader/api/0/stream/contents/feed/http://a.b//c/",
            id="an address in a stream",
        ),
        ("/reader/api/0/stream/contents/", "reader/api/0/stream/contents"),
        ("/", None),
        ("/api", None),
        ("/api/feeds", None),
        ("/greaderx/accounts/ClientLogin", None),
        ("/readers/api/0/token", None),
        ("/greader/feeds", None),
    ],
)
def test_an_address_is_a_call(path: str, call: str | None) -> None:
    assert call_of(path) == call


def test_a_call_has_all_its_addresses() -> None:
    assert {call_of(path) for path in addresses_of(LOGIN)} == {LOGIN}
    assert "/greader/api/greader.php/accounts/ClientLogin" in addresses_of(LOGIN)
