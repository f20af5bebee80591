"""The progress of a long task: what reports it and who shows it know this protocol alone."""

from typing import Protocol


class Progress(Protocol):
    """Receives how far each step of a task is. Called from the task's own thread."""

    def begin(self, step: str, total: int) -> None:
        """A step has so many elements (feeds, rows, objects) before it; called again, so many more."""
        ...

    def advance(self, step: str, by: int = 1) -> None:
        """The step is done with so many of them."""
        ...


class NoProgress:
    """A Progress that ignores every call."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str, by: int = 1) -> None: ...
