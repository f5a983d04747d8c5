# SPDX-License-Identifier: Apache-2.0
"""The node cases of the onnx package, of operator sets 18 and later, which Debian's libonnx-testdata is too old for.

usage: newer_cases.py FOLDER [COMMAND...]
Writes them below FOLDER as the ONNX project ships its cases, unless they are there, then runs COMMAND with FOLDER behind its
program's name. Leaves with 77 where there is no onnx package.
"""
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import warnings

FIRST = 18  # the operator set behind those of libonnx-testdata


def version_of(model):
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return max(versions, default=0)


def recorded(value, info, helper, tensor):
    if isinstance(value, tensor):
        return value
    if info.type.HasField("sequence_type"):
        return helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return helper.from_optional(value, info.name)
    return helper.from_array(value, info.name)


def write(case, folder, helper, tensor):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    graph = case.model.graph
    for kind, values, infos in zip(("input", "output"), case.data_sets[0], (graph.input, graph.output)):
        for i, (value, info) in enumerate(zip(values, infos)):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(recorded(value, info, helper, tensor).SerializeToString())


def write_all(folder):
    import numpy
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    shutil.rmtree(folder, ignore_errors=True)
    numpy.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if version_of(case.model) >= FIRST:
            write(case, os.path.join(folder, case.kind, case.name), numpy_helper, TensorProto)


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    try:
        made_by = [importlib.metadata.version(package) for package in ("onnx", "numpy")]
    except importlib.metadata.PackageNotFoundError as missing:
        print(f"skipped: {missing}")
        return 77
    with open(__file__, "rb") as file:
        made_by.append(hashlib.sha256(file.read()).hexdigest())
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    with open(folder + ".made_by", "a+") as stamp:
        fcntl.flock(stamp, fcntl.LOCK_EX)  # two tests read them, perhaps at once
        stamp.seek(0)
        if stamp.read() != " ".join(made_by) or not os.path.isdir(folder):
            stamp.truncate(0)  # not before all are written
            write_all(folder)
            stamp.write(" ".join(made_by))
    if command:
        return subprocess.call([command[0], folder, *command[1:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
