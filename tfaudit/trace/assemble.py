"""Put the summary of a trace together from its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import TraceError
from . import hosts
from .copies import with_directions
from .device import describe_device
from .health import examine
from .hosts import HostView
from .lanes import Lanes
from .reading import find_files, read_trace
from .steps import Steps, find_steps, split
from .summary import Device, Health, Host, Step, TraceSummary
from .tables import Plane, Trace


def summarise(path: Path) -> TraceSummary:
    """Summarise a trace file, or the newest session of a log folder with all its hosts.

    Raises `tfaudit.errors.TraceError` when nothing can be read; if only some of a session's files
    are damaged, these are named in ``health``.
    """
    files = find_files(Path(path))
    host_records: list[Host] = []
    devices: list[Device] = []
    steps: list[Step] = []
    health: list[Health] = []
    failures: list[TraceError] = []
    for file in files:
        try:
            trace, view, found = prepare(file)
        except TraceError as error:
            failures.append(error)
            continue
        host_records.append(hosts.describe(trace, view))
        lanes = all_lanes(trace, view, found)
        steps += split(found, lanes, trace.host)
        devices += [
            describe_device(trace, each, each.plane, found) for each in lanes if each.plane is not None
        ]
        health += examine(trace, view, found)
    if len(failures) == len(files):
        raise failures[0]
    health += [Health(kind="unreadable-file", level="warning", message=str(e)) for e in failures]
    return TraceSummary(
        sources=tuple(str(file) for file in files),
        hosts=tuple(host_records),
        devices=tuple(devices),
        steps=tuple(steps),
        health=tuple(health),
    )


def prepare(file: Path) -> tuple[Trace, HostView, Steps]:
    """Read one file; tell its copy kernels apart and find its steps."""
    trace = read_trace(file)
    view = hosts.view(trace)
    planes = [plane if plane.kind == "host" else with_directions(plane, view) for plane in trace.planes]
    planes.sort(key=_order)
    trace = replace(trace, planes=tuple(planes), host=trace.host or file.name.split(".")[0])
    return trace, view, find_steps(trace)


def _order(plane: Plane) -> tuple[str, int]:
    prefix, _, number = plane.name.rpartition(":")
    return (prefix, int(number)) if number.isdigit() else (plane.name, 0)


def all_lanes(trace: Trace, view: HostView, steps: Steps) -> list[Lanes]:
    """Return the lanes of each device, or those of the host alone where no device has events."""
    starts = [int(plane.events["start_ps"].min()) for plane in trace.planes if len(plane.events)]
    stops = [
        int((plane.events["start_ps"] + plane.events["duration_ps"]).max())
        for plane in trace.planes
        if len(plane.events)
    ]
    if steps:
        starts.append(int(steps.start.min()))
        stops.append(int(steps.stop.max()))
    start, stop = min(starts, default=0), max(stops, default=0)
    lanes = [Lanes(plane, view, start, stop) for plane in trace.devices]
    if not any(lane.busy for lane in lanes):
        lanes.append(Lanes(None, view, start, stop))
    return lanes
