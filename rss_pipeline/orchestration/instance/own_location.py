"""The name of our code location, and the states of sensors and schedules that have it under another name.

The UI lists the runs of a job by the name of its location. What `up` loads is in serving/locations.py.
https://docs.dagster.io/deployment/code-locations
"""

import dagster as dg

from rss_pipeline.orchestration import dagster_private as private

OWN_MODULE = "rss_pipeline.definitions"
OWN_LOCATION = "rss_pipeline"
"""The name with a workspace.yaml and without one, in a container, and of the runs that commands execute."""
REPOSITORY_TAG = {".dagster/repository": f"__repository__@{OWN_LOCATION}"}


def move_states(instance: dg.DagsterInstance) -> int:
    """Move the states of our sensors and schedules to the name of today; return their number.

    Without a workspace.yaml the location had the name of its module, and whoever had stopped a sensor there
    would find it running.
    """
    moved = 0
    for state in instance.all_instigator_state():
        repository = state.origin.repository_origin
        place = repository.code_location_origin
        if place.location_name == OWN_LOCATION or not _is_own(place):
            continue
        renamed = private.InProcessCodeLocationOrigin(
            place.loadable_target_origin, location_name=OWN_LOCATION
        )
        origin = private.RemoteRepositoryOrigin(renamed, repository.repository_name).get_instigator_origin(
            state.instigator_name
        )
        if instance.get_instigator_state(origin.get_id(), origin.get_selector().get_id()) is None:
            instance.add_instigator_state(
                private.InstigatorState(origin, state.instigator_type, state.status, state.instigator_data)
            )
        instance.delete_instigator_state(state.instigator_origin_id, state.selector_id)
        moved += 1
    return moved


def _is_own(place: private.CodeLocationOrigin) -> bool:
    ours = private.InProcessCodeLocationOrigin, private.ManagedGrpcPythonEnvCodeLocationOrigin
    return isinstance(place, ours) and place.loadable_target_origin.module_name == OWN_MODULE
