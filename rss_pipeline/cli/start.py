"""The start of the `rss-pipeline` command, and nothing else.

Each parser process imports the module that started the program once more, so this one imports nothing heavy.
"""

import gc


def main() -> None:
    """Run the command of `sys.argv`."""
    # The objects that Dagster's import makes stay; at Python's threshold of 700 the collector walks them
    # again and again, for a sixth of the import's time.
    gc.set_threshold(50_000, 20, 20)
    from rss_pipeline.cli.main import main as command

    command()
