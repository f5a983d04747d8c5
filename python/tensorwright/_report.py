# SPDX-License-Identifier: Apache-2.0
"""One HTML page that explains an engine, or two side by side. It holds all that it shows and asks for nothing else."""

import html
import json
import os
import re

from . import _inspect
from ._model import write


def page(engines):
    """The page of what _inspect.facts() gave."""
    here = os.path.dirname(os.path.abspath(__file__))

    def part(name):
        with open(os.path.join(here, name), encoding="utf-8") as file:
            return file.read()

    # Names come from models: nothing in them may end the script element or open a comment in it.
    data = json.dumps(engines, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    parts = {
        "TITLE": html.escape(" and ".join(engine["file"] for engine in engines)),
        "CSS": part("report.css"),
        "JS": part("report.js") + part("report_panels.js"),
        "DATA": data,
    }
    return re.sub("@(TITLE|CSS|JS|DATA)@", lambda match: parts[match.group(1)], part("report.html"))


def main(options):
    paths = [options.plan] + ([options.other] if options.other else [])
    engines = [_inspect.facts(path, options.device, not options.no_time) for path in paths]
    if len(options.accuracy) > len(paths):
        raise ValueError(f"--accuracy is given {len(options.accuracy)} times for {len(paths)} engine(s): once for each, in their order")
    for engine, path in zip(engines, options.accuracy):
        _inspect.add_accuracy(engine, path)
    write(options.output, page(engines).encode())
    print(f"{options.output}: {os.path.getsize(options.output) / 1024:.0f} KiB, open it in a browser")
    return 0
