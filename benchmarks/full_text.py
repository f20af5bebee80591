"""The articles of 181 public pages as the reader shows them, by the scorer of their benchmark.

    git clone https://github.com/scrapinghub/article-extraction-benchmark
    python -m benchmarks.full_text article-extraction-benchmark

Prints F1, precision and recall by its own scorer, on the text of the HTML that is shown; an article that
is refused as a wall or a list counts as empty. Then processor time, and each refusal.
"""

import gzip
import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rss_pipeline.features.full_text.extract import extract_article


def main(folder: Path) -> None:
    """Extract and score the pages of a clone."""
    truth: dict[str, dict[str, Any]] = json.loads((folder / "ground-truth.json").read_text())
    predicted: dict[str, dict[str, str]] = {}
    refused: list[str] = []
    seconds: list[float] = []
    for key, page in truth.items():
        body = gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes())
        began = time.thread_time()
        found = extract_article(body, "text/html; charset=utf-8", page["url"])
        seconds.append(time.thread_time() - began)
        predicted[key] = {"articleBody": found.text}
        if found.verdict != "article":
            refused.append(f"{found.verdict:>10}  {page['url']}")
    score = _scorer(folder / "evaluate.py").evaluate(truth, predicted, 200)
    for name in ("f1", "precision", "recall"):
        print(f"{name:<10} {score[name]:.4f} ± {score[f'{name}_std']:.4f}")
    mean, most = 1000 * statistics.mean(seconds), 1000 * max(seconds)
    print(f"{len(truth)} pages, {mean:.0f} ms of processor time a page in the mean, {most:.0f} ms at most")
    print("\n".join([f"{len(refused)} refused:", *refused]))


def _scorer(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("evaluate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(Path(sys.argv[1]))
