# SPDX-License-Identifier: Apache-2.0
"""docs/onnx.md lists the operators of ONNX that are not imported: those of the parser, no more and no less."""

import pathlib
import re

import pytest

onnx = pytest.importorskip("onnx")
from onnx_models import Model, parsed  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/onnx.md"


def listed():
    section = PAGE.read_text(encoding="utf-8").split("## Operators that are not imported")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_operators():
    import numpy as np
    model = Model()
    model.node("Relu", [model.fed("x", np.zeros(1, np.float32))], ["y"])
    (_, _, parser, _), error = parsed(model.bytes(y=(np.float32, [1])))
    assert error is None
    known = {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}
    refused = {name for name in known if not parser.supports_operator(name)}
    assert len(known) > 190 and refused == listed(), (refused - listed(), listed() - refused)
