"""The key that signs tokens: one for each home, for its owner's eyes only, whole or not there."""

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from rss_pipeline.errors import InfrastructureError
from rss_pipeline.reader.accounts.tokens import reader_secret
from rss_pipeline.settings import Settings
from rss_pipeline_tests.storage.conftest import nobody, public_folder

__all__ = ["public_folder"]


def settings(home: Path, **environ: str) -> Settings:
    return Settings.from_environ({"RSS_PIPELINE_HOME": str(home), **environ}, cwd=home.parent)


def key_of(home: Path) -> bytes:
    return reader_secret(settings(home))


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "var"
    key = key_of(home)
    assert len(key) >= 32
    assert key_of(home) == key
    assert key_of(tmp_path / "other") != key
    assert [path.name for path in home.iterdir()] == ["reader_secret"]
    assert stat.S_IMODE((home / "reader_secret").stat().st_mode) == 0o600


@pytest.mark.slow
def test_processes_that_start_at_once_have_one_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        for n in range(10):
            assert len(set(pool.map(key_of, [tmp_path / str(n)] * 8))) == 1


def test_the_key_of_the_environment_wins_and_makes_no_file(tmp_path: Path) -> None:
    key = "0123456789abcdef0123456789abcdef"
    assert reader_secret(settings(tmp_path / "var", RSS_READER_SECRET=key)) == key.encode()
    assert not (tmp_path / "var").exists()


def test_a_mode_that_a_copy_has_lost_is_set_again(tmp_path: Path) -> None:
    key = key_of(tmp_path)
    (tmp_path / "reader_secret").chmod(0o644)
    assert key_of(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "reader_secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("body", [b"", b"\n", b"x" * 31, b" " * 40, None])
def test_a_file_without_a_whole_key_is_put_aside_unseen(
    tmp_path: Path, body: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "reader_secret"
    if body is None:
        path.mkdir()
    else:
        path.write_bytes(body)
    key = key_of(tmp_path)
    assert len(key) >= 32
    assert key_of(tmp_path) == key
    [aside] = tmp_path.glob("reader_secret.damaged-*")
    [line] = caplog.messages
    assert (str(path) in line, str(aside) in line, "xxx" in line) == (True, True, False)


def test_a_home_that_cannot_be_written_is_an_error_with_advice(public_folder: Path) -> None:
    with nobody():
        if os.access(public_folder, os.W_OK, effective_ids=True):
            pytest.skip("this user's own folder")
        with pytest.raises(InfrastructureError, match="or set RSS_READER_SECRET"):
            key_of(public_folder)
