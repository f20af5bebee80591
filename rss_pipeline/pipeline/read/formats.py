"""The names of the formats of an export, apart from export.py: the command lists them without its parsers."""

from typing import Literal, get_args

Format = Literal["jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
