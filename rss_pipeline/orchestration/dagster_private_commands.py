"""Names as in dagster_private.py, but of Dagster's command line: one of them loads all its commands, 2 MB."""

# A run in a worker's process, and in a process of ours: `dagster api execute_run` is a command of its own.
from dagster._cli.api import _execute_run_command_body as execute_run_command_body

# The code servers of `dagster dev`, without its webserver.
from dagster._cli.proxy_server_manager import ProxyServerManager
