# SPDX-License-Identifier: Apache-2.0
"""The network API with the weights of a PyTorch module, layer by layer as samples do it: random chains of modules (TW_SEED chooses them),
beside the module itself."""

import os

import numpy as np
import pytest
import tensorrt as trt

torch = pytest.importorskip("torch", reason="SKIP: PyTorch is not installed")

from small import LOUD, engine_of, run  # noqa: E402

nn = torch.nn
SEEDS = [int(os.environ.get("TW_SEED", 0)) + i for i in range(int(os.environ.get("TW_COUNT", 8)))]


def numbers(tensor):
    return np.ascontiguousarray(tensor.detach().numpy())


class Chain:
    """Adds a random module and the layer of the same meaning, step by step."""

    def __init__(self, seed):
        self.random = r = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.builder = trt.Builder(LOUD)
        self.network = self.builder.create_network(1)
        self.shape = (int(r.integers(1, 3)), int(r.integers(1, 4)) * 2, int(r.integers(6, 12)), int(r.integers(6, 12)))
        self.y = self.network.add_input("x", trt.float32, self.shape)
        self.modules, self.channels = [], self.shape[1]

    def pick(self, *values):
        return values[int(self.random.integers(len(values)))]

    def add(self, module, layer):
        assert layer is not None, module
        self.modules.append(module)
        self.y = layer.get_output(0)

    def convolution(self):
        groups = self.pick(1, 2, self.channels)
        k, window = self.pick(2, 4) * self.channels // 2 // groups * groups or groups, self.pick(1, 3)
        stride, dilation, bias = self.pick(1, 2), self.pick(1, 2), self.pick(True, False)
        module = nn.Conv2d(self.channels, k, window, stride, (window // 2) * dilation, dilation, groups, bias)
        weights = numbers(module.bias) if bias else trt.Weights()
        layer = self.network.add_convolution_nd(self.y, k, (window, window), numbers(module.weight), weights)
        layer.stride_nd, layer.dilation_nd, layer.num_groups = (stride, stride), (dilation, dilation), groups
        layer.padding_nd = (module.padding[0],) * 2
        self.channels = k
        self.add(module, layer)

    def deconvolution(self):
        groups = self.pick(1, 2)
        k, window, stride, padding = self.pick(2, 4) * groups, self.pick(2, 3), self.pick(1, 2), self.pick(0, 1)
        module = nn.ConvTranspose2d(self.channels, k, window, stride, padding, groups=groups)
        layer = self.network.add_deconvolution_nd(self.y, k, trt.DimsHW(window, window), numbers(module.weight), numbers(module.bias))
        layer.stride_nd, layer.padding_nd, layer.num_groups = (stride, stride), (padding, padding), groups
        self.channels = k
        self.add(module, layer)

    def batch_norm(self):
        module = nn.BatchNorm2d(self.channels).eval()
        with torch.no_grad():
            for each in (module.weight, module.running_var):
                each.uniform_(0.5, 1.5)
            for each in (module.bias, module.running_mean):
                each.normal_()
        scale = numbers(module.weight) / np.sqrt(numbers(module.running_var) + module.eps)
        shift = numbers(module.bias) - numbers(module.running_mean) * scale
        self.add(module, self.network.add_scale_nd(self.y, trt.ScaleMode.CHANNEL, shift, scale, np.ones_like(scale), 1))

    def activation(self):
        module, kind, more = self.pick(
            (nn.ReLU(), "RELU", {}),
            (nn.LeakyReLU(0.2), "LEAKY_RELU", {"alpha": 0.2}),
            (nn.ELU(1.3), "ELU", {"alpha": 1.3}),
            (nn.Hardtanh(-0.5, 1.5), "CLIP", {"alpha": -0.5, "beta": 1.5}),
            (nn.SELU(), "SELU", {"alpha": 1.6732632423543772, "beta": 1.0507009873554805}),
            (nn.Softsign(), "SOFTSIGN", {}),
            (nn.Hardsigmoid(), "HARD_SIGMOID", {"alpha": 1 / 6, "beta": 0.5}),
        )
        layer = self.network.add_activation(self.y, getattr(trt.ActivationType, kind))
        for name, value in more.items():
            setattr(layer, name, value)
        self.add(module, layer)

    def parametric_relu(self):
        module = nn.PReLU(self.channels)
        with torch.no_grad():
            module.weight.uniform_(-0.5, 0.5)
        slopes = self.network.add_constant((1, self.channels, 1, 1), numbers(module.weight))
        self.add(module, self.network.add_parametric_relu(self.y, slopes.get_output(0)))

    def pooling(self):
        window, stride = self.pick(2, 3), self.pick(1, 2)
        padding, counted = self.pick(0, 1), self.pick(True, False)
        average = self.pick(True, False)
        if average:
            module = nn.AvgPool2d(window, stride, padding, count_include_pad=counted)
        else:
            module = nn.MaxPool2d(window, stride, padding)
        layer = self.network.add_pooling_nd(self.y, trt.PoolingType.AVERAGE if average else trt.PoolingType.MAX, (window, window))
        layer.stride_nd, layer.padding_nd, layer.average_count_excludes_padding = (stride, stride), (padding, padding), not counted
        self.add(module, layer)

    def resize(self):
        linear, aligned = self.pick((False, False), (True, False), (True, True))
        module = nn.Upsample(scale_factor=2, mode="bilinear" if linear else "nearest", align_corners=aligned if linear else None)
        layer = self.network.add_resize(self.y)
        layer.scales = [1, 1, 2, 2]
        layer.resize_mode = trt.InterpolationMode.LINEAR if linear else trt.InterpolationMode.NEAREST
        kinds = trt.ResizeCoordinateTransformation
        layer.coordinate_transformation = (kinds.ALIGN_CORNERS if aligned else kinds.HALF_PIXEL) if linear else kinds.ASYMMETRIC
        if not linear:
            layer.nearest_rounding = trt.ResizeRoundMode.FLOOR
        self.add(module, layer)

    def shuffle(self):
        module = nn.ChannelShuffle(2)
        first, last = self.network.add_shuffle(self.y), None
        n, c, h, w = self.y.shape
        first.reshape_dims, first.second_transpose = (n, 2, c // 2, h, w), trt.Permutation([0, 2, 1, 3, 4])
        last = self.network.add_shuffle(first.get_output(0))
        last.reshape_dims = (n, c, h, w)
        self.add(module, last)

    def end(self):
        n, c, h, w = self.y.shape
        flat = self.network.add_shuffle(self.y)
        flat.reshape_dims = (n, -1, 1, 1)
        self.add(nn.Flatten(), flat)
        module = nn.Linear(c * h * w, 7)
        self.add(module, self.network.add_fully_connected(self.y, 7, numbers(module.weight), numbers(module.bias)))
        flat = self.network.add_shuffle(self.y)
        flat.reshape_dims = (n, 7)
        layer = self.network.add_softmax(flat.get_output(0))
        layer.axes = 1 << 1
        self.add(nn.Softmax(1), layer)

    def grow(self):
        steps = ["convolution", "deconvolution", "batch_norm", "activation", "parametric_relu", "pooling", "resize", "shuffle"]
        for name in self.random.choice(steps, int(self.random.integers(3, 9))):
            small = min(self.y.shape[2:]) < 4
            if small and name in ("pooling", "convolution") or (name == "resize" and max(self.y.shape[2:]) > 30):
                continue
            if self.channels % 2 and name in ("shuffle", "convolution", "deconvolution"):
                continue
            getattr(self, name)()
        before = self.y
        self.end()
        for name, tensor in (("before", before), ("y", self.y)):
            tensor.name = name
            self.network.mark_output(tensor)


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_of_modules(seed):
    chain = Chain(seed)
    chain.grow()
    x = chain.random.standard_normal(chain.shape).astype(np.float32)
    with torch.no_grad():
        before = nn.Sequential(*chain.modules[:-3]).double()(torch.from_numpy(x).double())
        expected = nn.Sequential(*chain.modules[-3:]).double()(before)
    y = run(engine_of(chain.builder, chain.network, chain.builder.create_builder_config()), x=x)
    scale = float(before.abs().max())
    assert float(before.std()) > 1e-3 * scale
    np.testing.assert_allclose(y["before"], before.numpy(), rtol=1e-4, atol=1e-4 * scale, err_msg=str(chain.modules))
    np.testing.assert_allclose(y["y"], expected.numpy(), rtol=1e-3, atol=1e-5, err_msg=str(chain.modules))
