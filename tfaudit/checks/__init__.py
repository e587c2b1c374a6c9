"""The checks, one file per section of the checklist. Importing this package registers them all."""

from . import (  # noqa: F401
    cpu,
    devices,
    gpu,
    instances,
    performance,
    project,
    storage,
    traced,
    trust,
    utilised,
)
