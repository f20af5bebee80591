"""Which text a request may bring."""

import pytest
from pydantic import TypeAdapter, ValidationError

from rss_pipeline.api.fields import Line, Text

LINE: TypeAdapter[str] = TypeAdapter(Line)
TEXT: TypeAdapter[str] = TypeAdapter(Text)


@pytest.mark.parametrize("text", ["", "News", "Œuvres", "新聞", "👩\u200d💻", "نی\u200cم", "a\u00adb"])
def test_text_of_every_script_is_taken(text: str) -> None:
    assert LINE.validate_python(text) == TEXT.validate_python(text) == text


@pytest.mark.parametrize("text", ["\0", "a\x1bb", "\x7f", "\x9f", "\ud800"])
def test_what_no_store_takes_is_refused(text: str) -> None:
    for adapter in (LINE, TEXT):
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


def test_a_line_has_no_breaks_and_a_text_may() -> None:
    assert TEXT.validate_python("a\n\tb") == "a\n\tb"
    for text in ("a\nb", "a\tb", "a\rb"):
        with pytest.raises(ValidationError):
            LINE.validate_python(text)
