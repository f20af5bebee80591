"""The spool: a folder of one run for bodies and parsed rows, which are too large for memory."""

import shutil
import tempfile
from pathlib import Path

from rss_pipeline.errors import InfrastructureError, reason


class Spool:
    """A folder below `root`, made at its first use and removed with the run."""

    def __init__(self, root: Path, *, run_id: str) -> None:
        self._root = root
        self._run_id = run_id
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """The existing folder. Raises InfrastructureError if it cannot be made."""
        if self._folder is None:
            try:
                self._root.mkdir(parents=True, exist_ok=True)
                self._folder = Path(tempfile.mkdtemp(prefix=f"{self._run_id[:8]}-", dir=self._root))
            except OSError as error:
                raise InfrastructureError(
                    f"the spool folder {self._root} cannot be used: {reason(error)}"
                ) from error
        return self._folder

    def remove(self) -> None:
        """Remove the folder with all files in it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
