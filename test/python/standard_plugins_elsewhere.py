# SPDX-License-Identifier: Apache-2.0
"""usage: standard_plugins_elsewhere.py PLAN INPUTS.npz OUTPUTS.npz
A process that has nothing but a plan: makes the plugins known, loads it, runs it. elsewhere() starts one."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorrt as trt

from small import QUIET, run, run_batch


def elsewhere(plan, arrays):
    """Outputs by name, of inputs by name; those of networks with an implicit batch have it in front."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("model.plan", "inputs.npz", "outputs.npz")]
        with open(files[0], "wb") as file:
            file.write(plan)
        np.savez(files[1], **arrays)
        subprocess.run([sys.executable, "-W", "ignore", __file__, *files], check=True)
        with np.load(files[2]) as results:
            return dict(results)


def main():
    plan, inputs, outputs = sys.argv[1:]
    assert trt.init_libnvinfer_plugins(QUIET, "")
    with open(plan, "rb") as file:
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(file.read())
    with np.load(inputs) as arrays:
        arrays = dict(arrays)
    np.savez(outputs, **(run_batch(engine, arrays) if engine.has_implicit_batch_dimension else run(engine, **arrays)))


if __name__ == "__main__":
    main()
