"""The policies of requests for feeds and for images, from the settings."""

from contextlib import suppress
from dataclasses import replace

from rss_pipeline.collector.fetch.image_round import image_policy
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.environment import user_agent
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.pipeline.session.this_machine import this_machine
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.installation import read_contact

IMAGE_SECONDS = 20.0
"""For all requests of one attempt."""
IMAGE_ROUND_SECONDS = 60.0
"""Images of a claim that were not begun by then are released: a slow host delays the others no longer."""


def with_contact(settings: Settings, database: Database) -> Settings:
    """The settings with the contact of the first user's page, where RSS_USER_AGENT_CONTACT names none."""
    if settings.has_contact:
        return settings
    contact = None
    with suppress(InfrastructureError):
        # The claim meets the error, and reports it.
        contact = read_contact(database)
    return settings if contact is None else replace(settings, user_agent=user_agent(contact))


def feed_policy(settings: Settings) -> FetchPolicy:
    """The policy of a round of feeds, without the limit of its time."""
    policy = FetchPolicy(
        user_agent=settings.user_agent,
        concurrency=settings.fetch_concurrency,
        host_delay=settings.host_delay_seconds,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        allow_networks=settings.allow_networks,
        allow_ports=settings.allow_ports,
        machine=this_machine(settings),
    )
    return policy.of_size(settings.max_feed_mb and settings.max_feed_mb * 10**6)


def images_policy(settings: Settings) -> FetchPolicy:
    """The policy of a round of images."""
    return image_policy(
        user_agent=settings.user_agent,
        concurrency=settings.image_concurrency,
        connections_per_host=settings.images_per_host,
        host_delay=settings.image_host_delay_seconds,
        deadline=IMAGE_SECONDS,
        round_seconds=IMAGE_ROUND_SECONDS,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        allow_networks=settings.allow_networks,
        allow_ports=settings.allow_ports,
        machine=this_machine(settings),
    )
