# SPDX-License-Identifier: Apache-2.0
"""Asks a model that `tensorwright serve model.plan` serves, with tensors as bytes; the standard library and NumPy are all it needs.

    python client.py http://127.0.0.1:8000 model                  # random numbers for every input
    python client.py http://127.0.0.1:8000 model x=image.npy      # an array from a file
"""

import json
import sys
import urllib.error
import urllib.request

import numpy as np

TYPES = {"FP32": "f4", "FP16": "f2", "INT32": "i4", "INT8": "i1", "UINT8": "u1", "BOOL": "?"}


def call(url, body=None, headers=None):
    """(headers, body) of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {})) as response:
            return response.headers, response.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: {error.status}: {json.loads(error.read())['error']}")
    except urllib.error.URLError as error:
        sys.exit(f"{url}: {error.reason}")


def main(server, model, *files):
    url = f"{server}/v2/models/{model}"
    about = json.loads(call(url)[1])
    given = {name: np.load(path) for name, _, path in (file.partition("=") for file in files)}
    header, arrays = {"inputs": [], "parameters": {"binary_data_output": True}}, []
    for tensor in about["inputs"]:
        dtype, shape = np.dtype(TYPES[tensor["datatype"]]), [1 if n < 0 else n for n in tensor["shape"]]
        array = given.get(tensor["name"])
        if array is None:
            array = np.random.default_rng(0).random(shape)
        arrays.append(np.asarray(array, dtype, order="C"))
        tensor = {**tensor, "shape": list(arrays[-1].shape), "parameters": {"binary_data_size": arrays[-1].nbytes}}
        header["inputs"].append(tensor)
    text = json.dumps(header).encode()
    body = text + b"".join(array.tobytes() for array in arrays)
    headers, data = call(url + "/infer", body, {"Inference-Header-Content-Length": str(len(text))})
    at = int(headers["Inference-Header-Content-Length"])
    for tensor in json.loads(data[:at])["outputs"]:
        size = tensor["parameters"]["binary_data_size"]
        y = np.frombuffer(data[at : at + size], TYPES[tensor["datatype"]]).reshape(tensor["shape"])
        at += size
        print(f"{tensor['name']}: {tensor['datatype']} {tensor['shape']}, mean {y.mean():.6g}, first {y.ravel()[:5]}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
