"""The values that run config can set: none in a resource, and none from an environment variable in an op.

Whoever reaches the UI can start a run with a config of their own. Dagster lets it override each field of a
`ConfigurableResource`, and takes `{"env": "NAME"}` for each text, number and truth value of a `dg.Config`:
a store's token would go to any URL, and any variable into an error message. The resources themselves are
in build_polls.py.
https://docs.dagster.io/guides/operate/configuration/run-configuration
"""

from typing import Any

import dagster as dg

from rss_pipeline.orchestration.dagster_private import (
    ConfigType,
    ConfigurableResourceFactoryResourceDefinition,
    ConfiguredDefinitionConfigSchema,
    IDefinitionConfigSchema,
    convert_user_facing_definition_config_schema,
)

NOTHING: dict[str, Any] = {}
"""The `config_schema` of a resource that no run configures. None would accept anything."""
QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Run config of runs that are not started by hand: their events go to the history and not to the terminal."""


class _Closed(ConfiguredDefinitionConfigSchema):
    """A schema that accepts nothing, for a definition with all its values; the UI shows those values."""

    def __init__(self, definition: dg.ResourceDefinition) -> None:
        self._values: IDefinitionConfigSchema = definition.config_schema
        super().__init__(
            definition,
            convert_user_facing_definition_config_schema(NOTHING),
            self._values.default_value,
        )

    @property
    def default_provided(self) -> bool:
        return self._values.default_provided

    @property
    def default_value_as_json_str(self) -> str:
        return self._values.default_value_as_json_str


def closed(resource: dg.ConfigurableResource[Any]) -> dg.ResourceDefinition:
    """The definition of a resource that no run configures; the UI shows its values as before."""
    definition = resource.get_resource_definition()
    return ConfigurableResourceFactoryResourceDefinition(
        type(resource),
        resource_fn=definition.resource_fn,
        config_schema=_Closed(definition),
        description=definition.description,
        nested_resources={},
        nested_partial_resources={},
    )


def plain(config: type[dg.Config]) -> dg.Field:
    """The schema of these options with every value written as it is: none names an environment variable."""
    fields = {
        name: dg.Field(
            _plain(field.config_type),
            is_required=field.is_required,
            description=field.description,
            **({"default_value": field.default_value} if field.default_provided else {}),
        )
        for name, field in config.to_fields_dict().items()
    }
    return dg.Field(fields, description=config.__doc__)


def _plain(found: ConfigType) -> Any:
    match found:
        case dg.ScalarUnion():
            return found.scalar_type
        case dg.Noneable():
            return dg.Noneable(_plain(found.inner_type))
        case dg.Array():
            return dg.Array(_plain(found.inner_type))
        case _:
            return found
