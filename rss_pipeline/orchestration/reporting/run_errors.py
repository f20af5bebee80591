"""The error that ended a run, as the sentence that a person can act on. Reads events; nothing is recorded."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from rss_pipeline import errors

_OWN_ERRORS = frozenset(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RssPipelineError)
)
_INTERRUPTS = frozenset({"DagsterExecutionInterruptedError", "KeyboardInterrupt"})


def first_error(events: Iterable[dg.DagsterEvent]) -> tuple[str, str] | None:
    """The place (step, or type of event) and the sentence of the first error among these events."""
    for event in events:
        data = event.event_specific_data
        error = getattr(data, "error", None)
        if error is not None:
            ours = getattr(data, "user_failure_data", None)
            sentence = _sentence(error) if ours is None or not ours.description else str(ours.description)
            return event.step_key or event.event_type_value.lower(), sentence
    return None


def was_stopped(events: Iterable[dg.DagsterEvent]) -> bool:
    """True if the first error among these events is a signal: somebody stopped the run, or its machine."""
    errors = (getattr(event.event_specific_data, "error", None) for event in events)
    first = next((error for error in errors if error is not None), None)
    return first is not None and _cause(first).cls_name in _INTERRUPTS


def _cause(error: Any) -> Any:
    while error.cause is not None and error.cls_name not in _OWN_ERRORS:
        error = error.cause
    return error


def _sentence(error: Any) -> str:
    """The text of the project's own exception, not of its cause."""
    error = _cause(error)
    if error.cls_name in _INTERRUPTS:
        return "stopped before its end; feeds that were not finished are due again"
    text = str(error.message).strip()
    return _without_class_name(text) if error.cls_name in _OWN_ERRORS else text


def _without_class_name(text: str) -> str:
    # Dagster passes errors on as text, "rss_pipeline.errors.DatabaseUnavailable: the sentence", and nothing
    # else.
    return text.partition(": ")[2]
