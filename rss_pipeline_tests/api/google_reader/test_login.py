"""ClientLogin, T and user-info: who is let in, by what, and what each client relies on."""

import json
import logging
from collections.abc import Iterator

import httpx
import pytest

from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.support.reader import Reader

LOGIN = "/greader/accounts/ClientLogin"
INFO = "/greader/reader/api/0/user-info"
TOKEN = "/greader/reader/api/0/token"
CONTENTS = "/greader/reader/api/0/stream/items/contents"


@pytest.fixture
def phone(reader: Reader) -> Phone:
    return Phone.of_new_user(reader, "ann")


@pytest.fixture
def anybody(reader: Reader) -> Iterator[httpx.Client]:
    with reader.client() as client:
        yield client


def credentials(phone: Phone) -> dict[str, str]:
    return {"Email": phone.name, "Passwd": phone.password}


def test_a_login_gives_lines_of_two_parts(phone: Phone, anybody: httpx.Client) -> None:
    """NetNewsWire splits each at `=` and wants two parts; Fluent Reader reads `\\S+` behind `Auth=`."""
    answer = anybody.post(LOGIN, data=credentials(phone))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = dict(line.split("=") for line in answer.text.splitlines())
    assert list(lines) == ["SID", "LSID", "Auth"]
    header = {"Authorization": f"GoogleLogin auth={lines['Auth']}"}
    assert anybody.get(INFO, headers=header).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        LOGIN,
        "/accounts/ClientLogin",
        "/greader//accounts/ClientLogin",
        f"/api/greader.php{LOGIN[8:]}",
    ],
)
def test_a_login_works_below_prefixes_that_people_type(
    phone: Phone, anybody: httpx.Client, path: str
) -> None:
    assert anybody.post(path, data=credentials(phone)).status_code == 200


def test_readrops_logs_in_by_a_multipart_form(phone: Phone, anybody: httpx.Client) -> None:
    fields = {name: (None, value) for name, value in credentials(phone).items()}
    assert "Auth=" in anybody.post(LOGIN, files=fields).text


def test_newsboat_logs_in_with_an_address_that_is_not_escaped(phone: Phone, anybody: httpx.Client) -> None:
    body = (
        f"service=reader&Email={phone.name}&Passwd={phone.password}&source=newsboat%2F2.21&"
        "accountType=HOSTED_OR_GOOGLE&continue=http://www.google.com/"
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert "Auth=" in anybody.post(LOGIN, content=body, headers=headers).text


def test_a_form_without_a_content_type_is_a_form(phone: Phone, anybody: httpx.Client) -> None:
    assert "Auth=" in anybody.post(LOGIN, content=f"Email={phone.name}&Passwd={phone.password}").text


def test_read_you_requests_json(phone: Phone, anybody: httpx.Client) -> None:
    found = anybody.post(LOGIN, data=credentials(phone) | {"output": "json"}).json()
    assert found.keys() == {"SID", "LSID", "Auth"}


@pytest.mark.parametrize(
    "changes",
    [{"Passwd": "wrong"}, {"Email": "nobody"}, {"Email": "", "Passwd": ""}, {"Passwd": "\u202e\ufffd" * 100}],
)
def test_a_wrong_login_is_401_and_all_are_alike(
    phone: Phone, anybody: httpx.Client, changes: dict[str, str]
) -> None:
    answer = anybody.post(LOGIN, data=credentials(phone) | changes)
    assert answer.status_code == 401
    assert answer.text == anybody.post(LOGIN, data={"Email": "x", "Passwd": "y"}).text
    assert answer.text.startswith("Error=BadAuthentication\n")
    assert "Auth=" not in answer.text


def test_a_login_without_a_form_is_refused(anybody: httpx.Client) -> None:
    assert anybody.post(LOGIN).status_code == 400
    assert anybody.post(LOGIN, data={"Email": "ann"}).status_code == 400


@pytest.mark.slow
def test_many_wrong_logins_have_to_wait(phone: Phone, anybody: httpx.Client) -> None:
    answers = [anybody.post(LOGIN, data={"Email": "ann", "Passwd": str(n)}) for n in range(200)]
    late = answers[-1]
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0
    assert anybody.post(LOGIN, data=credentials(phone)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_password_in_the_address_is_refused_with_a_sentence(
    phone: Phone, anybody: httpx.Client, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """FreshRSS wrote them into its logs (CVE-2023-22481)."""
    with caplog.at_level(logging.DEBUG, "rss_pipeline"):
        answer = anybody.request(method, LOGIN, params=credentials(phone))
    assert answer.status_code == 400
    assert "body of a POST" in answer.text
    assert phone.password not in answer.text
    assert phone.password not in caplog.text


def test_a_login_is_by_post(anybody: httpx.Client) -> None:
    answer = anybody.get(LOGIN)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_nothing_secret_is_logged(
    phone: Phone, anybody: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "rss_pipeline"):
        auth = phone.auth
        anybody.post(LOGIN, data={"Email": "a-secret-typed-as-name", "Passwd": "a-wrong-secret"})
        anybody.get(TOKEN, headers={"Authorization": f"GoogleLogin auth={auth}x"}, params={"T": "secret-t"})
    for secret in ("a-secret-typed-as-name", "a-wrong-secret", "secret-t", auth, phone.password):
        assert secret not in caplog.text
    assert "127.0.0.1" in caplog.text


@pytest.mark.parametrize(
    "form", ["GoogleLogin auth={}", "GoogleLogin Auth={}", 'googlelogin auth="{}"', "GoogleLogin  auth={} "]
)
def test_the_header_alone_opens_a_call(phone: Phone, anybody: httpx.Client, form: str) -> None:
    """RSS Guard, Fluent Reader and FeedMe send no T."""
    headers = {"Authorization": form.format(phone.auth)}
    assert anybody.get(INFO, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "GoogleLogin auth=",
        "GoogleLogin auth=nonsense",
        "GoogleLogin auth={auth}x",
        "GoogleLogin {auth}",
        "Bearer {auth}",
        "Basic YW5uOnA=",
    ],
)
@pytest.mark.parametrize("path", [INFO, TOKEN])
def test_no_header_or_a_wrong_one_is_401_and_not_500(
    phone: Phone, anybody: httpx.Client, header: str | None, path: str
) -> None:
    headers = {} if header is None else {"Authorization": header.format(auth=phone.auth)}
    answer = anybody.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("GoogleLogin")
    assert "x-reader-google-bad-token" not in answer.headers


def test_a_cookie_never_opens_a_call(phone: Phone, anybody: httpx.Client) -> None:
    for name in ("rss_session", "__Host-rss_session", "auth", "SID"):
        assert anybody.get(INFO, headers={"Cookie": f"{name}={phone.auth}"}).status_code == 401


def test_a_jwt_of_the_json_api_opens_no_call(phone: Phone, reader: Reader, anybody: httpx.Client) -> None:
    jwt = phone.jwt()
    for form in (f"GoogleLogin auth={jwt}", f"Bearer {jwt}"):
        assert anybody.get(INFO, headers={"Authorization": form}).status_code == 401


def test_user_info_is_all_strings(phone: Phone) -> None:
    found = phone.get("user-info").json()
    assert found.keys() == {"userId", "userName", "userProfileId", "userEmail"}
    assert found["userName"] == "ann"
    assert all(isinstance(value, str) for value in found.values())


def test_a_revoked_app_password_ends_its_sessions(phone: Phone) -> None:
    assert phone.get("user-info").status_code == 200
    phone.revoke()
    assert phone.get("user-info").status_code == 401


def test_a_session_lives_while_it_is_used(phone: Phone, reader: Reader) -> None:
    for _ in range(5):
        reader.clock.pass_(days=20)
        assert phone.get("user-info").status_code == 200
    reader.clock.pass_(days=31)
    assert phone.get("user-info").status_code == 401


def test_the_prefix_itself_says_pass_and_what_to_type(anybody: httpx.Client) -> None:
    for path in ("/greader", "/greader/", "/api/greader.php"):
        answer = anybody.get(path)
        assert answer.text.startswith("PASS")
        assert "app password" in answer.text
    assert anybody.get("/greader/check/compatibility").text == "PASS"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("preference/list", 501),
        ("preference/stream/list", 501),
        ("friend/list", 501),
        ("search/items/ids", 501),
        ("nonsense", 404),
        ("stream", 404),
    ],
)
def test_what_is_not_there_is_never_an_empty_list(phone: Phone, path: str, status: int) -> None:
    answer = phone.get(path, output="json")
    assert answer.status_code == status
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_a_method_that_a_call_does_not_take_is_405(phone: Phone) -> None:
    answer = phone.client.put("/greader/reader/api/0/user-info")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize("output", ["xml", "atom", "protobuf"])
def test_another_output_than_json_is_refused(phone: Phone, output: str) -> None:
    assert phone.get("user-info", output=output).status_code == 400


# T, the token of writes: where it opens a call, and where it does not.


def test_t_can_go_into_a_form_as_it_is(phone: Phone, anybody: httpx.Client) -> None:
    """newsboat and Liferea send it unescaped, with its newline if it has one."""
    token = phone.get("token").text
    assert token == token.strip()
    assert not set(token) & set("+&=%# ")


def test_liferea_gets_contents_by_t_alone(phone: Phone, anybody: httpx.Client) -> None:
    body = f"output=json&mediaRss=true&T={phone.auth}&i=1763822000123456"
    answer = anybody.post(CONTENTS, content=body)
    assert answer.status_code == 200
    assert answer.json()["items"] == []


def test_t_alone_opens_no_other_call_and_not_in_an_address(phone: Phone, anybody: httpx.Client) -> None:
    assert anybody.get(INFO, params={"T": phone.auth}).status_code == 401
    assert anybody.post(CONTENTS, params={"T": phone.auth, "i": "1"}).status_code == 401
    edit = {"T": phone.auth, "i": "1", "a": "user/-/state/com.google/read"}
    assert anybody.post("/greader/reader/api/0/edit-tag", data=edit).status_code == 401


def test_a_wrong_t_alone_says_so(anybody: httpx.Client) -> None:
    answer = anybody.post(CONTENTS, data={"T": "0" * 32 + "/" + "x" * 43, "i": "1"})
    assert answer.status_code == 401
    assert answer.headers["x-reader-google-bad-token"] == "true"


@pytest.mark.parametrize("t", [None, "", "null", "of another session"])
def test_t_beside_the_header_is_not_needed(phone: Phone, t: str | None) -> None:
    fields = {"i": "1763822000123456", "a": "user/-/state/com.google/read"} | ({} if t is None else {"T": t})
    assert phone.post("edit-tag", fields).text == "OK"
