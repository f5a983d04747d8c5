# SPDX-License-Identifier: Apache-2.0
"""The network of a decoder's file, or of two: one that makes embeddings of tokens, and a decoder that reads these."""

from __future__ import annotations

import tensorrt as trt

from .._model import Logger

# What a decoder reads in place of tokens.
_EMBEDS = "inputs_embeds"


def _parsed(path: str, network, logger: Logger):
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(path):
        reasons = [parser.get_error(i).desc() for i in range(parser.num_errors)]
        raise ValueError(f"{path} cannot be imported: " + "; ".join(reasons or logger.errors[-3:] or ["it is no ONNX model"]))
    return parser


def imported(path: str, logger: Logger, embeddings: str | None = None):
    """(builder, network, settings) of a file; the parsers, which the network's weights belong to, are the last. embeddings: the file that makes of
    tokens what this one reads."""
    builder = trt.Builder(logger)
    network, parsers = _network_of(builder, [path], logger)
    if embeddings and _EMBEDS in (network.get_input(i).name for i in range(network.num_inputs)):
        network, parsers = _network_of(builder, [embeddings, path], logger)
    settings = builder.create_builder_config()
    settings.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    return builder, network, settings, parsers


def _network_of(builder, paths: list[str], logger: Logger):
    """A network, and its parsers. Of two files the first makes embeddings for the other."""
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parsers, made = [], None
    for path in paths:
        parsers.append(_parsed(path, network, logger))
        if path != paths[-1]:
            made = _embedded(network, path)
    if made:
        _read_instead(network, made)
    return network, parsers


def _embedded(network, path: str):
    """What is made of tokens, which is an output no more."""
    inputs = [network.get_input(i).name for i in range(network.num_inputs)]
    if inputs != ["input_ids"] or network.num_outputs != 1:
        raise ValueError(f"{path} has the inputs {', '.join(inputs)}; input_ids alone, and one output, are expected")
    made = network.get_output(0)
    network.unmark_output(made)
    made.name = f"{made.name} (of tokens)"
    return made


def _read_instead(network, made) -> None:
    """What the decoder had as an input is made of tokens."""
    given = next(t for t in (network.get_input(i) for i in range(network.num_inputs)) if t.name == _EMBEDS)
    for layer in (network.get_layer(i) for i in range(network.num_layers)):
        for i in range(layer.num_inputs):
            read = layer.get_input(i)
            if read is not None and read.name == _EMBEDS:
                layer.set_input(i, made)
    network.remove_tensor(given)
