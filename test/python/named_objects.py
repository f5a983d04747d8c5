# SPDX-License-Identifier: Apache-2.0
"""One object of every class of the module, for everything_named_test.py: made, given by a call, or handed to a callback."""

import numpy as np
import tensorrt as trt

FLOATS = np.ones(64, np.float32)


class Logger(trt.ILogger):
    """Keeps what it is told."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, msg):
        self.lines.append(msg)


class Recorded:
    """A network that notes which of its methods were called, and what came of them."""

    def __init__(self, network):
        self._network, self.called, self.made = network, set(), []

    def __getattr__(self, name):
        method = getattr(self._network, name)

        def call(*arguments, **named):
            self.called.add(name)
            result = method(*arguments, **named)
            assert name.startswith(("mark_", "set_")) or result is not None, name
            self.made.append(result)
            return result

        return call


def f32(count):
    return FLOATS[:count]


def every_layer(network, plugin):
    """Each add_ method of the network once, as its users call it."""
    net = Recorded(network)
    x = net.add_input("x", trt.float32, (1, 4, 6, 6))
    rows = net.add_input("rows", trt.float32, (4, 8))
    indices = net.add_constant((2,), np.zeros(2, np.int32)).get_output(0)
    flag = net.add_input("flag", trt.bool, ())
    count = net.add_constant((), np.full((), 3, np.int32)).get_output(0)
    scale = net.add_constant((), np.full((), 0.1, np.float32)).get_output(0)
    net.add_convolution(x, 4, (1, 1), f32(16), f32(4))
    net.add_convolution_nd(x, 4, (1, 1), f32(16), f32(4))
    net.add_fully_connected(net.add_input("flat", trt.float32, (2, 8, 1, 1)), 2, f32(16), f32(2))
    net.add_activation(x, trt.ActivationType.RELU)
    net.add_pooling(x, trt.PoolingType.MAX, (2, 2))
    net.add_pooling_nd(x, trt.PoolingType.AVERAGE, (2, 2))
    net.add_lrn(x, 3, 1e-4, 0.75, 1.0)
    net.add_scale(x, trt.ScaleMode.CHANNEL, f32(4), f32(4), f32(4))
    net.add_scale_nd(x, trt.ScaleMode.UNIFORM, f32(1), f32(1), f32(1), 1)
    net.add_softmax(x)
    net.add_concatenation([x, x])
    net.add_deconvolution(x, 4, (1, 1), f32(16), f32(4))
    net.add_deconvolution_nd(x, 4, (1, 1), f32(16), f32(4))
    net.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    net.add_unary(x, trt.UnaryOperation.EXP)
    net.add_padding(x, (1, 1), (1, 1))
    net.add_padding_nd(x, (1, 1), (1, 1))
    net.add_shuffle(x)
    net.add_slice(x, (0, 0, 0, 0), (1, 4, 6, 6), (1, 1, 1, 1))
    net.add_reduce(x, trt.ReduceOperation.SUM, 2, True)
    net.add_topk(x, trt.TopKOperation.MAX, 1, 2)
    net.add_gather(rows, indices, 0)
    net.add_gather_v2(rows, indices, trt.GatherMode.DEFAULT)
    updates = net.add_constant((2, 8), f32(16)).get_output(0)
    places = net.add_constant((2, 8), np.zeros(16, np.int32)).get_output(0)
    net.add_scatter(rows, places, updates, trt.ScatterMode.ELEMENT)
    bounds = net.add_constant((1, 4, 1), np.ones(4, np.int32)).get_output(0)
    net.add_ragged_softmax(net.add_input("ragged", trt.float32, (1, 4, 8)), bounds)
    net.add_matrix_multiply(rows, trt.MatrixOperation.NONE, rows, trt.MatrixOperation.TRANSPOSE)
    net.add_rnn_v2(net.add_input("sequence", trt.float32, (1, 3, 5)), 1, 4, 3, trt.RNNOperation.LSTM)
    net.add_identity(x)
    net.add_plugin_v2([x], plugin)
    net.add_parametric_relu(x, net.add_constant((1, 4, 1, 1), f32(4)).get_output(0))
    net.add_resize(x)
    net.add_shape(x)
    net.add_select(flag, x, x)
    net.add_assertion(flag, "must hold")
    net.add_grid_sample(x, net.add_input("grid", trt.float32, (1, 6, 6, 2)))
    boxes, scores = net.add_input("boxes", trt.float32, (1, 5, 4)), net.add_input("scores", trt.float32, (1, 5, 2))
    net.add_nms(boxes, scores, count)
    net.add_fill((2, 2), trt.FillOperation.LINSPACE)
    net.add_dequantize(net.add_quantize(x, scale).get_output(0), scale)
    net.add_einsum([rows, rows], "ij,kj->ik")
    values = net.add_constant((2,), np.arange(2, dtype=np.float32)).get_output(0)
    net.add_one_hot(indices, values, count, 1)
    net.add_non_zero(x)
    loop = net.add_loop()
    sum_ = loop.add_recurrence(scale)
    item = loop.add_iterator(net.add_constant((3,), f32(3)).get_output(0))
    total = net.add_elementwise(sum_.get_output(0), item.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    sum_.set_input(1, total)
    loop_parts = [sum_, item, loop.add_trip_limit(count, trt.TripLimit.COUNT), loop.add_loop_output(total, trt.LoopOutput.LAST_VALUE)]
    choice = net.add_if_conditional()
    condition, inside = choice.set_condition(flag), choice.add_input(x)
    twice = net.add_elementwise(inside.get_output(0), inside.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    net.made += [*loop_parts, condition, inside, choice.add_output(twice, inside.get_output(0))]
    return net


class Selector(trt.IAlgorithmSelector):
    """Shows what it is given, which lives for the call alone."""

    def __init__(self, show):
        trt.IAlgorithmSelector.__init__(self)
        self.show, self.shown = show, False

    def select_algorithms(self, context, choices):
        if not self.shown:
            self.shown = True
            for thing in (context, choices[0], choices[0].get_algorithm_io_info(0), choices[0].algorithm_variant):
                self.show(thing)
        return list(range(len(choices)))

    def report_algorithms(self, contexts, choices):
        pass


class Outputs(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)

    def reallocate_output(self, tensor_name, memory, size, alignment):
        return None

    def notify_shape(self, tensor_name, shape):
        pass
