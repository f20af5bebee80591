"""The names of Dagster that it keeps no promise about: no other module of the project imports one of them,
but dagster_private_commands.py.

Each group has the reason for which nothing public does. Their code was read in the release that
rss_pipeline_tests/orchestration/test_dagster_private.py names; that test fails with any other, and lists what
has changed. What a subclass or a caller of ours does with them is in the module that uses them.
https://docs.dagster.io/about/releases
"""

# Raised for what a person wrote into dagster.yaml or workspace.yaml.
from dagster._check import CheckError

# The schema of options and resources in which nothing names an environment variable.
from dagster._config.config_type import ConfigType
from dagster._config.pythonic_config.resource import ConfigurableResourceFactoryResourceDefinition

# The module of a run's definitions.
from dagster._core.code_pointer import ModuleCodePointer

# The tags of a materialization that tell downstream assets whether it brought something new.
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)

# See ConfigType.
from dagster._core.definitions.definition_config_schema import (
    ConfiguredDefinitionConfigSchema,
    IDefinitionConfigSchema,
    convert_user_facing_definition_config_schema,
)

# The time of a sensor's last tick, which is set back where the next one should be at once.
from dagster._core.definitions.run_request import InstigatorType

# Raised by a launcher: the daemon puts the run back into its queue.
from dagster._core.errors import DagsterUserCodeUnreachableError

# The form of what a storage calls for each event of a run.
from dagster._core.event_api import EventHandlerFn

# Events of a run that no op yields: many in one transaction, and the end of a run whose process was killed.
from dagster._core.events import (
    AssetObservationData,
    JobFailureData,
    RunFailureReason,
    StepMaterializationData,
)

# A backfill that a command starts, and the removal of old ones.
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionsFilter,
    BulkActionStatus,
    PartitionBackfill,
)

# What runs of ours print goes into files alone.
from dagster._core.execution.compute_logs import redirect_to_file

# The instance of a home with another place for what its runs print.
from dagster._core.instance.ref import InstanceRef

# Documented for whoever writes a launcher, but exported nowhere.
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus

# A backfill that a command starts is of a job of this code location, by the names that the daemon knows. And
# our code location inside the daemon and the webserver: Dagster uses that in tests, and nothing else does
# without a code server.
from dagster._core.remote_origin import (
    CodeLocationOrigin,
    InProcessCodeLocationOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.remote_representation.code_location import InProcessCodeLocation
from dagster._core.remote_representation.external_data import partition_set_snap_name_for_job_name

# The limits of the run queue, of which a fleet has others.
from dagster._core.run_coordinator.queued_run_coordinator import RunQueueConfig

# See InstigatorType.
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData

# The places of what runs print: their files are removed with the runs, and some runs get none.
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType

# The storages and their tables: files stay open, the purge removes what Dagster leaves behind, a poll writes
# its events together, a run's file is made in one transaction.
from dagster._core.storage.event_log import InMemoryEventLogStorage, SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageMetadata,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorageWatchdog,
)
from dagster._core.storage.local_compute_log_manager import IO_TYPE_EXTENSION, LocalComputeLogManager
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.runs import SqliteRunStorage, SqlRunStorage
from dagster._core.storage.runs.schema import BackfillTagsTable, BulkActionsTable, RunsTable, RunTagsTable
from dagster._core.storage.schedules import SqliteScheduleStorage, SqlScheduleStorage
from dagster._core.storage.schedules.schema import JobTickTable
from dagster._core.storage.sql import get_alembic_config
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._core.storage.sqlite_storage import _event_logs_directory as event_logs_directory
from dagster._core.storage.sqlite_storage import _runs_directory as runs_directory
from dagster._core.storage.sqlite_storage import _schedule_directory as schedule_directory

# Tags that Dagster's daemon and UI read; their texts are documented, their names are not.
from dagster._core.storage.tags import (
    BACKFILL_ID_TAG,
    COMPUTE_KIND_TAG,
    GRPC_INFO_TAG,
    PRIORITY_TAG,
    RETRY_STRATEGY_TAG,
    RUN_FAILURE_REASON_TAG,
)

# Ids in the form that Dagster looks for.
from dagster._core.utils import make_new_backfill_id, make_new_run_id

# The UI in a webserver of ours: Dagster's own has no place for a layer that refuses other sites' pages.
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget, WorkspaceLoadTarget

# `dagster-daemon run` without its command line, which has no place for a location in this process, nor for
# threads that wake together.
from dagster._daemon.controller import create_daemons_from_instance, daemon_controller_from_instance
from dagster._daemon.daemon import DagsterDaemon, IntervalDaemon

# The base of what dagster.yaml names by module and class.
from dagster._serdes import ConfigurableClass, ConfigurableClassData

# A process of Dagster as its own commands begin one: signals and logs.
from dagster._utils.interrupts import capture_interrupts, setup_interrupt_handlers
from dagster._utils.log import configure_loggers
