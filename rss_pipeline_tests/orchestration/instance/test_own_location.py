"""Sensors and schedules keep their state where the code location gets another name."""

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.scheduler.instigation import InstigatorType
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from rss_pipeline.orchestration.dagster_private import (
    CodeLocationOrigin,
    InProcessCodeLocationOrigin,
    InstigatorState,
    InstigatorStatus,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteRepositoryOrigin,
)
from rss_pipeline.orchestration.instance.own_location import OWN_LOCATION, OWN_MODULE, move_states

OURS = LoadableTargetOrigin(module_name=OWN_MODULE)
THEIRS = LoadableTargetOrigin(module_name="their.definitions")


def state(place: CodeLocationOrigin, name: str, status: InstigatorStatus) -> InstigatorState:
    origin = RemoteRepositoryOrigin(place, "__repository__").get_instigator_origin(name)
    return InstigatorState(origin, InstigatorType.SENSOR, status)


@pytest.mark.parametrize("kind", [InProcessCodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin])
def test_a_sensor_that_was_stopped_under_another_name_of_our_location_stays_stopped(
    instance: dg.DagsterInstance, kind: type[InProcessCodeLocationOrigin]
) -> None:
    before, now = (kind(OURS, location_name=name) for name in (OWN_MODULE, OWN_LOCATION))
    theirs = GrpcServerCodeLocationOrigin("127.0.0.1", port=4000, location_name="theirs")
    stopped, running = InstigatorStatus.STOPPED, InstigatorStatus.RUNNING
    left = [
        state(kind(THEIRS, location_name="another"), "stopped", running),
        state(theirs, "stopped", running),
        state(now, "chosen", running),
    ]
    for each in [state(before, "stopped", stopped), state(before, "chosen", stopped), *left]:
        instance.add_instigator_state(each)
    assert move_states(instance) == 2
    assert {each.selector_id: each.status for each in instance.all_instigator_state()} == {
        **{each.selector_id: each.status for each in left},
        state(now, "stopped", stopped).selector_id: stopped,
    }
    assert move_states(instance) == 0
