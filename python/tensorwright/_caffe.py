# SPDX-License-Identifier: Apache-2.0
"""Caffe models for compile(): a network's text, its weights, and which blobs come out."""

import dataclasses
import os

import tensorrt as trt


class Reasons(trt.IErrorRecorder):
    """Of a parser: its logger is the process's first one, which may be another than that of this build."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def report_error(self, code, text):
        self.texts.append(text)
        return False

    def num_errors(self):
        return len(self.texts)

    def get_error_code(self, index):
        return trt.ErrorCodeTRT.INVALID_ARGUMENT

    def get_error_desc(self, index):
        return self.texts[index]

    def has_overflowed(self):
        return False

    def clear(self):
        self.texts.clear()


@dataclasses.dataclass(frozen=True)
class CaffeModel:
    path: str
    weights: str
    outputs: tuple  # none: blobs that no layer reads

    @classmethod
    def of(cls, model, weights, outputs):
        """Of the arguments of compile(); None where they name no Caffe model."""
        if isinstance(model, cls):
            return model
        name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else ""
        if name.endswith(".caffemodel"):
            raise ValueError(f"{name} has the weights of a Caffe model; compile its network's text, with weights={name!r}")
        if not name.endswith(".prototxt"):
            if weights is not None or outputs is not None:
                raise ValueError("weights and outputs are for Caffe models, whose networks are files *.prototxt")
            return None
        if weights is None:
            raise ValueError(f"{name} is the text of a Caffe network; weights= must name its file *.caffemodel")
        paths = [os.path.abspath(os.fspath(p)) for p in (name, weights)]
        for path in paths:
            if not os.path.isfile(path):
                raise FileNotFoundError(f"there is no model {path}")
        return cls(*paths, (outputs,) if isinstance(outputs, str) else tuple(outputs or ()))

    def import_into(self, network, shapes):
        """With a batch that is open where `shapes` gives another than 1."""
        parser, reasons = trt.CaffeParser(), Reasons()
        parser.error_recorder = reasons
        table = parser.parse(self.path, self.weights, network, trt.float32)
        if table is None:
            raise ValueError("the model cannot be imported: " + "; ".join(reasons.texts))
        for name in self.outputs or _leaves(network, table):
            tensor = table.find(name)
            if tensor is None:
                raise ValueError(f"outputs: no blob is called {name!r}")
            network.mark_output(tensor)
        for i in range(network.num_inputs):
            tensor = network.get_input(i)
            if any(shape[:1] != (1,) for shape in shapes.get(tensor.name, ())):
                tensor.shape = (-1, *tuple(tensor.shape)[1:])


def _leaves(network, table):
    layers = [network.get_layer(i) for i in range(network.num_layers)]
    read = {layer.get_input(i).name for layer in layers for i in range(layer.num_inputs) if layer.get_input(i)}
    names = [layer.get_output(i).name for layer in layers for i in range(layer.num_outputs)]
    return [name for name in names if name not in read and table.find(name) is not None]
