"""A request of a Google Reader client that is refused: a status, and a sentence for its user."""


class Refused(Exception):
    """Ends a request with this status; the sentence is the body of the answer."""

    def __init__(self, status: int, sentence: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}


def not_understood(sentence: str) -> Refused:
    """Status 400."""
    return Refused(400, sentence)
