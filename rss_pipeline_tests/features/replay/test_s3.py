"""A whole pipeline with its objects in a store with the S3 API that is not R2."""

from pathlib import Path

import pytest

from rss_pipeline_tests.features.replay.replays import collected, drop_database, restored
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.s3_server import rclone, s3_server


@pytest.mark.slow
def test_documents_and_images_are_kept_in_any_s3_and_give_the_items_back(
    tmp_path: Path, server: FeedServer
) -> None:
    program = rclone()
    if program is None:
        pytest.skip("rclone is not installed: there is no store with the S3 API besides R2's")
    for guid in ("a", "b"):
        picture = Answer(body=png(), headers={"Content-Type": "image/png"})
        server.route("127.0.0.41", f"/i/{guid}.png", picture)
    image = server.url("127.0.0.41", "/i")
    documents = [rss("a", image=image), rss("a", "b", image=image)]
    url = server.route("127.0.0.40", "/feed", *[Answer(body=body) for body in documents])
    with s3_server(program, tmp_path) as s3:
        pipeline = Pipeline(tmp_path, objects_server=s3.settings())
        pipeline.register(url, "blog")
        for _ in documents:
            pipeline.poll(all_feeds=True)
            pipeline.download()
            pipeline.clock.turn(hours=3)
        before = collected(pipeline)
        kept = sorted(found.key for found in pipeline.objects.list(""))
        assert [key.split("/")[0] for key in kept] == ["backups", "backups", "images", "images"]
        assert not (tmp_path / "objects").exists()
        drop_database(pipeline)
        assert restored(pipeline).is_whole
        assert collected(pipeline) == before
        pipeline.close()
