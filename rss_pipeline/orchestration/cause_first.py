"""The cause of a red run, as its first words: before stack traces and "Dependencies ... failed".

Dagster puts an exception of an op or a resource into one of its own ("Error occurred while executing op
..."), and shows that one first, at the end of the run as well. The sentences are those of errors.py.
https://docs.dagster.io/guides/build/ops/op-events#failures
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dagster as dg
from dagster import DagsterLogManager

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.session.session import Session

_Context = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext


@contextmanager
def run_step(context: _Context, session: Session) -> Iterator[None]:
    """`Session.step` around the body of an op, and `cause_first`."""
    with cause_first(context), session.step():
        yield


@contextmanager
def cause_first(context: _Context) -> Iterator[None]:
    """Around the body of an op: an exception becomes a line of the run's log and the failure of the step.

    Raises:
        dagster.Failure: with the exception's sentence as description, and the exception as its cause.
    """
    try:
        yield
    except dg.Failure as failure:
        _say(context.log, failure.description or "")
        raise
    except dg.DagsterError:
        raise
    except Exception as error:
        sentence = _sentence(error)
        _say(context.log, sentence)
        raise dg.Failure(description=sentence, allow_retries=False) from error


@contextmanager
def resource_cause_first(context: dg.InitResourceContext) -> Iterator[None]:
    """Around the body of a resource function; as `cause_first`.

    Raises:
        dagster.DagsterResourceFunctionError: with the exception's sentence as its text.
    """
    try:
        yield
    except dg.DagsterError:
        raise
    except Exception as error:
        sentence = _sentence(error)
        if context.log is not None:
            _say(context.log, sentence)
        raise dg.DagsterResourceFunctionError(  # type: ignore[no-untyped-call]
            sentence, user_exception=error, original_exc_info=sys.exc_info()
        ) from error


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, RssPipelineError) else f"{type(error).__name__}: {error}"


def _say(log: DagsterLogManager, sentence: str) -> None:
    # On a full disk the line cannot be written, and that error must not take the place of this one.
    with suppress(Exception):
        log.error(sentence)
