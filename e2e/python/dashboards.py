"""Reads dashboards as Grafana does, with the types that Grafana publishes for programs that make them.

    python dashboards.py FILE...

Each file has to be a dashboard of which nothing is lost on the way through these types, and every value of which is one that its field may have.
"""

import enum
import json
import sys
import typing
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

# What the data source adds to an annotation; the types are about dashboards alone.
OF_PROMETHEUS = {"step", "titleFormat", "textFormat"}


def lost(given, kept, path):
    """Fields that a dashboard has and Grafana does not know, or knows with another value."""
    if isinstance(given, dict):
        for name, value in given.items():
            below = f"{path}.{name}"
            if value is None or (path.startswith(".annotations.list") and name in OF_PROMETHEUS):
                continue
            if name in kept:
                yield from lost(value, kept[name], below)
            else:
                yield f"{below} is no field"
    elif isinstance(given, list):
        for index, (value, same) in enumerate(zip(given, kept, strict=True)):
            yield from lost(value, same, f"{path}[{index}]")
    elif given != kept:
        yield f"{path} is {given!r}, read as {kept!r}"


def fits(value, kind):
    """Whether a value is one of a kind. Objects are looked into by `wrong`."""
    origin = typing.get_origin(kind)
    if kind in (object, typing.Any):
        return True
    if origin is typing.Literal:
        return value in typing.get_args(kind)
    if origin is typing.Union:
        return any(fits(value, each) for each in typing.get_args(kind))
    if origin is list:
        [of] = typing.get_args(kind)
        return isinstance(value, list) and all(fits(each, of) for each in value)
    if origin is dict:
        return isinstance(value, dict)
    if issubclass(kind, enum.Enum):
        return value in [member.value for member in kind]
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    # What transforms data is left as it was read.
    return isinstance(value, (kind, dict) if hasattr(kind, "from_json") else kind)


def wrong(read, path):
    """Values that their fields may not have."""
    if isinstance(read, list):
        for index, value in enumerate(read):
            yield from wrong(value, f"{path}[{index}]")
    elif type(read).__module__.startswith("grafana_foundation_sdk.models"):
        module = vars(sys.modules[type(read).__module__])
        for name, kind in typing.get_type_hints(type(read), module).items():
            value = getattr(read, name)
            if not fits(value, kind):
                yield f"{path}.{name} is {value!r}, expected {kind}"
            yield from wrong(value, f"{path}.{name}")


def complaints(given):
    read = Dashboard.from_json(given)
    kept = json.loads(JSONEncoder().encode(read))
    return [*lost(given, kept, ""), *wrong(read, "")]


def main():
    register_default_plugins()
    # What is not one is found, or nothing would be.
    spoiled = {"title": 1, "panels": [{"type": "stat", "transparant": True, "options": {"colorMode": "loud"}}]}
    assert len(complaints(spoiled)) == 3, complaints(spoiled)
    bad = [f"{file}: {it}" for file in sys.argv[1:] for it in complaints(json.loads(Path(file).read_text()))]
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(sys.argv) - 1} dashboards are what Grafana reads")


if __name__ == "__main__":
    main()
