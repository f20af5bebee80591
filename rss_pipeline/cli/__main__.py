"""`python -m rss_pipeline.cli`, as `rss-pipeline`: for a process of ours that starts another."""

from rss_pipeline.cli.start import main

if __name__ == "__main__":
    main()
