"""The results of edit-tag, with the combinations that clients send."""

import pytest

from rss_pipeline.api.google_reader.responses import RefusedCall
from rss_pipeline.api.google_reader.tag_edits import TagEdit, read_edit

STATE = "user/-/state/com.google/"


def edit(add: str, remove: str, *, has_items: bool = True) -> TagEdit:
    def tags(names: str) -> list[str]:
        return [name if "/" in name else STATE + name for name in names.split()]

    return read_edit(tags(add), tags(remove), has_items=has_items)


@pytest.mark.parametrize(
    ("add", "remove", "expected"),
    [
        pytest.param("read", "", TagEdit(is_read=True), id="read"),
        pytest.param("", "read", TagEdit(is_read=False), id="NetNewsWire: not read"),
        pytest.param(
            "read", "kept-unread", TagEdit(is_read=True), id="newsboat: read, which miniflux forbids"
        ),
        pytest.param(
            "kept-unread tracking-kept-unread", "read", TagEdit(is_read=False), id="newsboat: unread"
        ),
        pytest.param("kept-unread", "", TagEdit(is_read=False), id="kept-unread is unread"),
        pytest.param("tracking-kept-unread", "", TagEdit(), id="Liferea's second request changes nothing"),
        pytest.param("", "kept-unread", TagEdit(), id="no longer kept unread is not read"),
        pytest.param("starred", "", TagEdit(is_starred=True), id="star"),
        pytest.param("", "starred", TagEdit(is_starred=False), id="star taken away"),
        pytest.param("broadcast like", "", TagEdit(), id="newsboat: share"),
        pytest.param("read starred", "", TagEdit(is_read=True, is_starred=True), id="both"),
        pytest.param("read kept-unread", "", TagEdit(is_read=False), id="both ways: unread"),
        pytest.param("read", "read", TagEdit(is_read=True), id="what is added counts"),
        pytest.param("user/1001/state/com.google/read", "", TagEdit(is_read=True), id="a user's number"),
    ],
)
def test_tags_are_states(add: str, remove: str, expected: TagEdit) -> None:
    assert edit(add, remove) == expected


def test_readrops_makes_a_folder_by_a_tag_without_items() -> None:
    assert edit("user/-/label/New", "", has_items=False) == TagEdit(new_folders=("New",))


@pytest.mark.parametrize(("add", "remove"), [("user/-/label/A", ""), ("", "user/-/label/A"), ("feed/a", "")])
def test_a_label_of_an_item_is_refused_rather_than_lost(add: str, remove: str) -> None:
    with pytest.raises(RefusedCall):
        edit(add, remove)


def test_an_edit_without_tags_is_refused() -> None:
    with pytest.raises(RefusedCall):
        edit("", "")
