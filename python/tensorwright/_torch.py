# SPDX-License-Identifier: Apache-2.0
"""Models of torch as ONNX, by its exporters."""

import contextlib
import inspect
import io
import os


def export_module(module, inputs, shapes):
    """The ONNX bytes of a torch module, with those extents open that shapes leave open or that differ from the example's; what its
    exporter raises is its own."""
    import torch

    if inputs is None:
        raise ValueError("a torch module needs inputs=, a tuple of example tensors for its forward()")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    parameters = list(inspect.signature(module.forward).parameters)
    buffer, training = io.BytesIO(), module.training
    names = parameters[: len(inputs)]
    options = {"input_names": names, "opset_version": 17, "dynamic_axes": open_axes(names, inputs, shapes)}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the exporter that needs no further package
    module.eval()
    try:
        torch.onnx.export(module, inputs, buffer, **options)
    finally:
        module.train(training)
    return buffer.getvalue()


def open_axes(names, inputs, shapes):
    """{input: {axis: its name}} of the extents that shapes give otherwise than the example tensors have them. First extents with the same
    limits are one, the batch."""
    examples = dict(zip(names, inputs))
    axes, batch = {}, None
    for name, three in shapes.items():
        if name not in examples:
            raise ValueError(f"shapes: no input is called {name!r} (inputs: {', '.join(names)})")
        example = tuple(getattr(examples[name], "shape", ()))
        if len(example) != len(three[0]):
            raise ValueError(
                f"shapes[{name!r}]: {list(three[0])} is of rank {len(three[0])}, the example in inputs= of rank {len(example)}"
            )
        found = {}
        for axis, extents in enumerate(zip(*three)):
            if set(extents) != {example[axis]}:
                batch = batch or (extents if axis == 0 else None)
                found[axis] = "batch" if axis == 0 and extents == batch else f"{name}_{axis}"
        if found:
            axes[name] = found
    return axes


def export_program(path, target):
    """Writes the ONNX file of a program that torch.export.save() wrote, with the program's names of inputs and outputs."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{path}: a program of torch.export needs torch and onnxscript ({error})") from error
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no model {path}")
    try:
        program = torch.export.load(path)
        signature = program.graph_signature
        names = {"input_names": list(signature.user_inputs), "output_names": list(signature.user_outputs)}
        with contextlib.redirect_stdout(io.StringIO()):  # the exporter tells its steps
            torch.onnx.export(program, (), target, dynamo=True, external_data=False, opset_version=18, **names)
    except Exception as error:  # whatever a file and an exporter may raise
        raise ValueError(f"{path} cannot be exported to ONNX: {str(error).strip().splitlines()[0]}") from error
