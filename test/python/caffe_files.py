# SPDX-License-Identifier: Apache-2.0
"""Caffe's files, written by hand: the network's text and the binary model; and engines of them."""

import struct

import numpy as np
import tensorrt as trt

from small import QUIET, run, run_batch

f = np.float32


def varint(v):
    out = b""
    v &= (1 << 64) - 1
    while v >= 128:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(number, content):
    """A field with a length: bytes, text or packed integers."""
    if isinstance(content, str):
        content = content.encode()
    if isinstance(content, (list, tuple)):
        content = b"".join(varint(v) for v in content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(number, value):
    return varint(number << 3) + varint(value)


def blob(array, form="float"):
    """BlobProto: its shape as a list, and its elements in one of the forms that files have."""
    array = np.asarray(array)
    shape = field(7, field(1, list(array.shape)))
    if form == "old":  # the shape as four numbers
        d = (1,) * (4 - array.ndim) + array.shape
        shape = b"".join(number(i + 1, v) for i, v in enumerate(d))
    if form in ("float", "old"):
        return shape + field(5, array.astype("<f4").tobytes())
    if form == "unpacked":
        return shape + b"".join(varint(5 << 3 | 5) + struct.pack("<f", v) for v in array.ravel())
    if form == "double":
        return shape + field(8, array.astype("<f8").tobytes())
    kind, dtype = {"raw_double": (0, "<f8"), "raw_float": (1, "<f4"), "raw_half": (2, "<f2")}[form]
    return shape + number(10, kind) + field(12, array.astype(dtype).tobytes())


class Word(str):
    """Of an enumeration."""


def text(values, indent=""):
    """A message's text of a dict: lists repeat a field."""
    out = ""
    for key, value in values.items():
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(v, dict):
                out += f"{indent}{key} {{\n{text(v, indent + '  ')}{indent}}}\n"
            elif isinstance(v, bool):
                out += f"{indent}{key}: {'true' if v else 'false'}\n"
            elif isinstance(v, str) and not isinstance(v, Word):
                out += f'{indent}{key}: "{v}"\n'
            else:
                out += f"{indent}{key}: {v}\n"
    return out


class Net:
    """A network's text and its model, layer by layer."""

    def __init__(self, form="float", v1=False):
        self.text, self.model, self.form, self.v1, self.count = "", b"", form, v1, 0

    def input(self, name, *shape, n=1):
        self.text += text({"input": name, "input_shape": {"dim": [n, *shape]}})
        return name

    def layer(self, kind, bottoms, tops=None, blobs=(), name=None, **params):
        """The tops' names: one, or a list of those given."""
        self.count += 1
        bottoms = [bottoms] if isinstance(bottoms, str) else list(bottoms)
        name = name or f"{kind.lower()}{self.count}"
        made = [name] if tops is None else [tops] if isinstance(tops, str) else list(tops)
        values = {"name": name, "type": Word(kind) if self.v1 else kind, "bottom": bottoms, "top": made, **params}
        self.text += text({"layers" if self.v1 else "layer": values})
        blobs = [blob(b, self.form) for b in blobs]
        if self.v1:
            self.model += field(2, field(4, name) + b"".join(field(6, b) for b in blobs))
        else:
            self.model += field(100, field(1, name) + field(2, kind) + b"".join(field(7, b) for b in blobs))
        return made if isinstance(tops, (list, tuple)) else made[0]


def network_of(net, outputs, *, explicit=False, batch=1, random=False, dtype=trt.float32, logger=QUIET, recorder=None):
    """(builder, network, parser); None for the network that is refused."""
    builder = trt.Builder(logger)
    builder.max_batch_size = batch
    network = builder.create_network(1 if explicit else 0)
    parser = trt.CaffeParser()
    if recorder:
        parser.error_recorder = recorder
    if random:
        import os
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "deploy.prototxt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(net.text)
            table = parser.parse(path, None, network, dtype)
    else:
        table = parser.parse_buffer(net.text.encode(), net.model, network, dtype)
    if table is None:
        return builder, None, parser
    for name in outputs:
        tensor = table.find(name)
        assert tensor is not None, name
        network.mark_output(tensor)
    return builder, network, parser


class Recorder(trt.IErrorRecorder):
    """Keeps the sentences."""

    def __init__(self):
        super().__init__()
        self.errors = []

    def report_error(self, code, text):
        self.errors.append(text)
        return False

    def num_errors(self):
        return len(self.errors)

    def get_error_code(self, i):
        return trt.ErrorCodeTRT.UNSPECIFIED_ERROR

    def get_error_desc(self, i):
        return self.errors[i]

    def has_overflowed(self):
        return False

    def clear(self):
        self.errors.clear()


def plan_of(net, outputs, flags=(), **options):
    recorder = Recorder()
    builder, network, _parser = network_of(net, outputs, recorder=recorder, **options)
    assert network is not None, recorder.errors
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    builder.error_recorder = recorder
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, recorder.errors
    return plan


def run_plan(plan, arrays, explicit):
    """Outputs by name; arrays with the batch in front."""
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
    for i in range(engine.num_bindings):
        name, shape = engine.get_binding_name(i), tuple(engine.get_binding_shape(i))
        if engine.binding_is_input(i):
            given = arrays[name].shape
            assert (given if explicit else given[1:]) == shape, f"{name}: {given} for {shape}"
    given = {name: np.asarray(array, f) for name, array in arrays.items()}
    return run(engine, **given) if explicit else run_batch(engine, given)


def refusal(net, **options):
    """The sentence of a network that the parser refuses."""
    recorder = Recorder()
    _builder, network, _parser = network_of(net, [], recorder=recorder, **options)
    assert network is None and recorder.errors, net.text
    return recorder.errors[-1]
