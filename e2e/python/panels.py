"""Draws dashboards as Grafana would show them, near enough to be looked at.

    python panels.py FOLDER

Each NAME.json in the folder has the panels of a dashboard with the results of their queries; it becomes NAME.png.
"""

import io
import json
import math
import sys
from datetime import datetime, timezone
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.dates as dates
import matplotlib.pyplot as plot
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

COLUMNS = 24
# Inches of a cell of Grafana's grid.
WIDTH, HEIGHT = 0.75, 0.38
DPI = 80
COLOURS = 256
# More would hide the lines.
LEGENDS = 12


def shown(value, unit):
    """A value as a person reads it."""
    if not math.isfinite(value):
        return "no value"
    if unit == "s":
        return duration(value)
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "bytes":
        return scaled(value, 1024, ("B", "KiB", "MiB", "GiB"))
    suffix = {"ops": " /s", "reqps": " /s"}.get(unit, unit.removeprefix("suffix:"))
    if suffix in ("short", "none"):
        suffix = ""
    return scaled(value, 1000, ("", "k", "M", "G")) + suffix


def duration(seconds):
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"


def scaled(value, step, names):
    for name in names[:-1]:
        if abs(value) < step:
            return f"{value:.4g} {name}".strip()
        value /= step
    return f"{value:.4g} {names[-1]}"


def instants(series):
    return [datetime.fromtimestamp(at, timezone.utc) for at, _ in series["points"]]


def values(series):
    return [number(value) for _, value in series["points"]]


def number(value):
    """JSON has no word for what is not a number."""
    return math.nan if value is None else value


def last(series):
    return values(series)[-1] if series["points"] else math.nan


def mark(axes, marks):
    """Annotations, as lines from top to bottom."""
    left, right = axes.get_xlim()
    for series in marks:
        for at in set(series["instants"]):
            instant = dates.date2num(datetime.fromtimestamp(at, timezone.utc))
            if left <= instant <= right:
                axes.axvline(instant, color=series["color"], linestyle="--", linewidth=1)


def along_time(axes, unit):
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.grid(alpha=0.3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, unit)))


def lines(axes, panel):
    for series in panel["series"]:
        axes.plot(instants(series), values(series), label=series["legend"], linewidth=1.2)
    along_time(axes, panel["unit"])
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    names = [series["legend"] for series in panel["series"]]
    if any(names):
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[:LEGENDS], labels[:LEGENDS], fontsize=6, loc="best", framealpha=0.5)
    if len(names) > LEGENDS:
        axes.text(0.99, 0.95, f"and {len(names) - LEGENDS} more", transform=axes.transAxes,
                  fontsize=6, ha="right", va="top")


def figures(axes, panel):
    axes.axis("off")
    count = max(1, len(panel["series"]))
    for index, series in enumerate(panel["series"]):
        x = (index + 0.5) / count
        cells = panel["place"]["w"] / count
        size = min(20, 4 + 4 * cells)
        axes.text(x, 0.55, shown(last(series), panel["unit"]), fontsize=size, ha="center", va="center")
        if count > 1:
            axes.text(x, 0.1, series["legend"], fontsize=min(7, 3 + 1.5 * cells), ha="center", va="center")


def bars(axes, panel):
    series = sorted(panel["series"], key=last)
    axes.barh(range(len(series)), [last(it) for it in series], color="lightsteelblue")
    axes.set_yticks([])
    for row, it in enumerate(series):
        axes.text(0, row, f" {it['legend']}: {shown(last(it), panel['unit'])}", fontsize=7, va="center")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, panel["unit"])))


def table(axes, panel):
    axes.axis("off")
    rows = [[*series["labels"].values(), shown(last(series), panel["unit"])] for series in panel["series"]]
    if rows:
        heads = [*panel["series"][0]["labels"], "value"]
        drawn = axes.table(rows[:30], colLabels=heads, loc="upper center", cellLoc="left")
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(7)


def heat(axes, panel):
    """Buckets count everything below their bound; what is drawn is what falls between two of them."""
    buckets = sorted(panel["series"], key=lambda series: float(series["labels"]["le"]))
    instant = instants(max(buckets, key=lambda series: len(series["points"])))
    rows, below = [], {}
    for bucket in buckets:
        upto = {at: number(value) for at, value in bucket["points"]}
        rows.append([max(0.0, value - below.get(at, 0.0)) for at, value in upto.items()])
        below = upto
    mesh = axes.pcolormesh(instant, range(len(rows)), rows, shading="nearest", cmap="viridis")
    plot.colorbar(mesh, ax=axes, pad=0.01).ax.tick_params(labelsize=6)
    along_time(axes, panel["unit"])
    axes.grid(False)
    bounds = [float(bucket["labels"]["le"]) for bucket in buckets]
    axes.set_yticks(range(len(bounds)))
    axes.set_yticklabels(
        [shown(bound, panel["unit"]) if math.isfinite(bound) else "more" for bound in bounds], fontsize=5
    )


KINDS = {"timeseries": lines, "stat": figures, "bargauge": bars, "table": table, "heatmap": heat}


def draw(dashboard):
    rows = max(panel["place"]["y"] + panel["place"]["h"] for panel in dashboard["panels"])
    # One row of cells is for the title.
    rows += 1
    figure = plot.figure(figsize=(COLUMNS * WIDTH, rows * HEIGHT), dpi=DPI)
    figure.text(0.5, 1 - 0.5 / rows, dashboard["title"], fontsize=16, ha="center", va="center")
    for panel in dashboard["panels"]:
        place = panel["place"]
        left, top = place["x"] / COLUMNS, 1 - (place["y"] + 1) / rows
        if panel["kind"] == "row":
            figure.text(left + 0.005, top - 0.6 / rows, panel["title"], fontsize=12, weight="bold", va="center")
            continue
        # Cells for the title above, the instants below, and the values on the left.
        width, height = place["w"] / COLUMNS, place["h"] / rows
        box = [left + 0.045, top - height + 0.9 / rows, width - 0.06, height - 2 / rows]
        axes = figure.add_axes(box)
        axes.set_title(panel["title"], fontsize=9)
        axes.tick_params(labelsize=6)
        KINDS[panel["kind"]](axes, panel)
        if panel["kind"] == "timeseries":
            mark(axes, dashboard["marks"])
    names = "   ".join(f"{marks['name']} ({marks['color']})" for marks in dashboard["marks"])
    if names:
        figure.text(0.99, 1 - 0.5 / rows, f"marked: {names}", fontsize=8, ha="right", va="center")
    return figure


def save(figure, picture):
    """With as few colours as are to be told apart, which takes a third of the room."""
    whole = io.BytesIO()
    figure.savefig(whole, format="png")
    with Image.open(whole) as image:
        image.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE).save(picture, optimize=True)


def main():
    [folder] = sys.argv[1:]
    for file in sorted(Path(folder).glob("*.json")):
        figure = draw(json.loads(file.read_text()))
        picture = file.with_suffix(".png")
        save(figure, picture)
        plot.close(figure)
        print(picture)


if __name__ == "__main__":
    main()
