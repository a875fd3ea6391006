"""Draws what a command shows in a terminal, as an SVG that plays it.

    python picture.py [--rows N] [--still] FILE COMMAND...

The command runs in a terminal of 92 columns. With --still the picture is the end alone; otherwise it plays, and a reader
that does not play it shows the end. Paths of temporary folders, which differ each time, are left out.
"""

import argparse
import os
import pty
import re
import sys
import time
from html import escape

import pyte

# The widest table of kubectl in the demo has so many.
COLUMNS = 92
# Pixels of a cell, and of the margin.
WIDTH, HEIGHT, MARGIN = 8.4, 17, 14
# How much faster than it was the picture plays, and how long it rests at the end, in seconds.
SPEED, REST = 4, 8
# What happens within this many seconds is one frame.
FRAME = 0.4
NOT_FOR_READERS = re.compile(r"/\S*/(tmp|target|\.cache)/\S*")


def run(command, screen):
    """Runs the command until it ends; frames of what was on the screen, each with its second, and its exit status."""
    stream = pyte.ByteStream(screen)
    begun, frames = time.monotonic(), []
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS=str(COLUMNS), LINES=str(screen.lines))
        os.execvp(command[0], command)
    while True:
        try:
            said = os.read(terminal, 65536)
        except OSError:
            break
        if not said:
            break
        stream.feed(said)
        second = time.monotonic() - begun
        if frames and second - frames[-1][0] < FRAME:
            second = frames.pop()[0]
        frames.append((second, lines_of(screen)))
    return frames, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lines_of(screen):
    """The lines on the screen, each with whether it is bold."""
    lines = []
    for row in range(screen.lines):
        cells = [screen.buffer[row][column] for column in range(COLUMNS)]
        text = NOT_FOR_READERS.sub("…", "".join(cell.data for cell in cells)).rstrip()
        lines.append((text, bool(text) and all(cell.bold for cell in cells if cell.data != " ")))
    return lines


def spans(frames):
    """Each line of text with its row and the frames in which it stands there, from and to."""
    last = len(frames)
    for row in range(len(frames[0][1])):
        begun = 0
        for index in range(1, last + 1):
            if index == last or frames[index][1][row] != frames[begun][1][row]:
                text, bold = frames[begun][1][row]
                if text:
                    yield row, text, bold, begun, index
                begun = index


def drawn(frames):
    """The picture."""
    used = max(row + 1 for _, lines in frames for row, (text, _) in enumerate(lines) if text)
    width, height = COLUMNS * WIDTH + 2 * MARGIN, used * HEIGHT + 2 * MARGIN
    at = [(second - frames[0][0]) / SPEED for second, _ in frames]
    total = at[-1] + REST
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">'
    )
    yield "<style>text{fill:#d4d4d4;white-space:pre}.b{font-weight:bold;fill:#fff}</style>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#1e1e1e"/>'
    if len(frames) > 1:
        yield (
            f'<rect width="0" height="0"><animate id="play" attributeName="x" begin="0s;play.end" dur="{total:.2f}s"'
            ' from="0" to="0"/></rect>'
        )
    for row, text, bold, begun, ended in spans(frames):
        stays = ended == len(frames)
        style = ' class="b"' if bold else ""
        hidden = "" if stays else ' visibility="hidden"'
        place = f'x="{MARGIN}" y="{MARGIN + (row + 0.8) * HEIGHT:.1f}" textLength="{len(text) * WIDTH:.1f}"'
        if stays and begun:
            when = f'<set attributeName="visibility" to="hidden" begin="play.begin" dur="{at[begun]:.2f}s"/>'
        elif not stays:
            span = at[ended] - at[begun]
            when = f'<set attributeName="visibility" to="visible" begin="play.begin+{at[begun]:.2f}s" dur="{span:.2f}s"/>'
        else:
            when = ""
        yield f'<text{style}{hidden} {place} xml:space="preserve">{escape(text)}{when}</text>'
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--still", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    frames, status = run(given.command, pyte.Screen(COLUMNS, given.rows))
    if status:
        print("\n".join(text for text, _ in frames[-1][1]), file=sys.stderr)
        sys.exit(status)
    with open(given.file, "w", encoding="utf-8") as picture:
        picture.write("\n".join(drawn(frames[-1:] if given.still else frames)) + "\n")


if __name__ == "__main__":
    main()
