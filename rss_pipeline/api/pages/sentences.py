"""Messages of errors as sentences of a page."""

from rss_pipeline.errors import RssPipelineError


def sentence(error: RssPipelineError) -> str:
    """The error's text with a capital and a full stop: a terminal shows it without."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
