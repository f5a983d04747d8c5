# SPDX-License-Identifier: Apache-2.0
"""What clients of either protocol ask besides inference, as the dicts that REST sends and gRPC fills its messages from."""

from .. import __version__
from .tensors import name_of

_EXTENSIONS = ["binary_tensor_data", "model_repository", "model_configuration", "statistics"]


def server(regions_enabled):
    extensions = _EXTENSIONS + (["system_shared_memory"] if regions_enabled else [])
    return {"name": "tensorwright", "version": __version__, "extensions": extensions}


def model(repository, name, version):
    """Metadata: names, types and shapes of tensors, -1 where a dimension is open."""
    served = repository.get(name, version)

    def tensor(n):
        return {"name": n, "datatype": name_of(served.dtypes[n]), "shape": list(served.shapes[n])}

    return {
        "name": name,
        "versions": [version] if version else repository.versions(name),
        "platform": "tensorrt_plan",
        "inputs": [tensor(n) for n in served.model.inputs],
        "outputs": [tensor(n) for n in served.model.outputs],
    }


def config(repository, name, version):
    """A configuration as clients read it; with batches, dims leave out the first."""
    served = repository.get(name, version)
    batched = served.batch > 1

    def tensor(n):
        return {
            "name": n,
            "data_type": "TYPE_" + name_of(served.dtypes[n]),
            "dims": list(served.shapes[n])[1 if batched else 0 :],
        }

    result = {
        "name": name,
        "platform": "tensorrt_plan",
        "backend": "tensorrt",
        "max_batch_size": served.batch if batched else 0,
        "input": [tensor(n) for n in served.model.inputs],
        "output": [tensor(n) for n in served.model.outputs],
    }
    if batched:
        result["dynamic_batching"] = {"max_queue_delay_microseconds": int(served.options.batch_delay * 1e6)}
    return result


def statistics(repository, name="", version=""):
    if name:
        repository.get(name, version)
    return {
        "model_stats": [
            served.metrics.statistics(n, v)
            for n, v, served, _ in repository.all()
            if served and name in ("", n) and version in ("", v)
        ]
    }


def index(repository, ready_only=False):
    rows = []
    for name, version, served, reason in repository.all():
        if served or not ready_only:
            rows.append({"name": name, "version": version, "state": "READY" if served else "UNAVAILABLE", "reason": reason})
    return rows
