"""Lists of feeds as OPML: of feeds.yaml at the command line, of a user on the page and in both APIs."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="opml",
    commands={
        "import": Part("opml.cli:import_"),
        "export-opml": Part("opml.cli:export_opml"),
    },
)
