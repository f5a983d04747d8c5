# SPDX-License-Identifier: Apache-2.0
"""The networks of gpu_peers.py in PyTorch, with the weights of the ONNX files that bench/models writes.

Each network stands here twice. As a module (`resnet50`, `bert`, `vit`): what torch.compile and eager get, and in FP32 the
reference. And as a chain of library calls (`*_library`): cuDNN convolutions with bias, residual and ReLU inside, cuBLASLt with
a bias or with a bias and GELU, cuDNN's or flash attention. Batch normalization is folded into the convolutions for both, q, k
and v come from one product: what a careful user would do by hand.

Weights are read in the order in which bench/models draws them; names and shapes are checked on the way.
The networks of torch_networks.py are rows, too, as modules alone, and so are those of a file that the user names.
"""
import importlib.util
import math
import os
import re
import sys

import torch
import torch.nn.functional as F
from torch import nn

import torch_networks


class Weights:
    """The initializers of a model, one after another."""

    def __init__(self, model):
        self.left = list(model.graph.initializer)[::-1]

    def take(self, stem, *shape):
        """shape: None where any extent will do."""
        from onnx import numpy_helper
        tensor = self.left.pop()
        found = tuple(tensor.dims)
        if not tensor.name.startswith(stem + "_") or len(found) != len(shape) or any(
                want not in (None, have) for want, have in zip(shape, found)):
            raise ValueError(f"expected {stem} {shape}, found {tensor.name} {found}")
        return torch.from_numpy(numpy_helper.to_array(tensor).copy())

    def end(self):
        if self.left:
            raise ValueError(f"{len(self.left)} weights are left, the next is {self.left[-1].name}")

    def linear(self, inputs, outputs):
        """x [.., inputs] times [inputs, outputs]: as F.linear takes them, [outputs, inputs] and [outputs]."""
        weight = self.take("weight", inputs, outputs)
        return weight.t().contiguous(), self.take("bias", outputs)

    def gemm(self, inputs, outputs):
        bias = self.take("bias", outputs)
        return self.take("weight", outputs, inputs), bias

    def norm(self, width):
        return self.take("gamma", width), self.take("beta", width)


class Layer(nn.Module):
    """Tensors of a layer, as buffers: they follow .half() and .to()."""

    def __init__(self, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)


# --- ResNet-50 ---


class Conv(Layer):
    """A convolution with the batch normalization behind it folded in."""

    def __init__(self, weights, inputs, outputs, kernel, stride=1):
        weight = weights.take("weight", outputs, inputs, kernel, kernel).double()
        scale, shift, mean, variance = (weights.take(stem, outputs).double() for stem in ("bn_scale", "bn_bias", "bn_mean",
                                                                                         "bn_var"))
        factor = scale / torch.sqrt(variance + 1e-5)
        super().__init__(weight=(weight * factor[:, None, None, None]).float(), bias=(shift - mean * factor).float())
        self.stride, self.pad = stride, kernel // 2

    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias, self.stride, self.pad)

    def relu(self, x):
        return torch.cudnn_convolution_relu(x, self.weight, self.bias, [self.stride] * 2, [self.pad] * 2, [1, 1], 1)

    def add_relu(self, x, residual):
        return torch.cudnn_convolution_add_relu(x, self.weight, residual, 1.0, self.bias, [self.stride] * 2, [self.pad] * 2,
                                                [1, 1], 1)


class Bottleneck(nn.Module):
    def __init__(self, weights, inputs, width, stride):
        super().__init__()
        self.one = Conv(weights, inputs, width, 1)
        self.two = Conv(weights, width, width, 3, stride)
        self.three = Conv(weights, width, 4 * width, 1)
        self.down = Conv(weights, inputs, 4 * width, 1, stride) if inputs != 4 * width or stride != 1 else None

    def forward(self, x):
        y = self.three(torch.relu(self.two(torch.relu(self.one(x)))))
        return torch.relu(y + (x if self.down is None else self.down(x)))

    def library(self, x):
        residual = x if self.down is None else self.down(x)
        return self.three.add_relu(self.two.relu(self.one.relu(x)), residual)


class ResNet50(nn.Module):
    def __init__(self, model):
        super().__init__()
        weights = Weights(model)
        self.stem = Conv(weights, 3, 64, 7, 2)
        blocks, inputs = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for i in range(count):
                blocks.append(Bottleneck(weights, inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1))
                inputs = 256 << stage
        self.blocks = nn.ModuleList(blocks)
        weight, bias = weights.gemm(inputs, 1000)
        self.head = Layer(weight=weight, bias=bias)
        weights.end()

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return (F.linear(x.mean((2, 3)), self.head.weight, self.head.bias),)

    def library(self, x):
        x = F.max_pool2d(self.stem.relu(x), 3, 2, 1)
        for block in self.blocks:
            x = block.library(x)
        return (torch.addmm(self.head.bias, F.adaptive_avg_pool2d(x, 1).flatten(1), self.head.weight.t()),)


# --- transformers ---


class Norm(Layer):
    def __init__(self, weights, width, eps):
        gamma, beta = weights.norm(width)
        super().__init__(gamma=gamma, beta=beta)
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)


class Linear(Layer):
    def __init__(self, pairs):
        """pairs: one or more (weight, bias) side by side, one product for all."""
        super().__init__(weight=torch.cat([w for w, _ in pairs]), bias=torch.cat([b for _, b in pairs]))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)

    def library(self, x):
        """cuBLASLt with the bias in its epilogue. x: [rows, inputs]."""
        return torch.addmm(self.bias, x, self.weight.t())

    def library_gelu(self, x):
        """Bias and GELU in the epilogue, which has the tanh form alone."""
        return torch._addmm_activation(self.bias, x, self.weight.t(), use_gelu=True)


class Attention(nn.Module):
    def __init__(self, weights, width, heads, together):
        super().__init__()
        self.heads = heads
        self.qkv = Linear([weights.linear(width, 3 * width)] if together else [weights.linear(width, width) for _ in range(3)])
        self.out = Linear([weights.linear(width, width)])

    def _attend(self, qkv, batch, mask=None):
        """qkv: batch * length rows. The result has the rows' order too."""
        width = qkv.shape[-1] // 3
        q, k, v = qkv.view(batch, -1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)

    def forward(self, x, mask=None):
        return self.out(self._attend(self.qkv(x), x.shape[0], mask).reshape(x.shape))

    def library(self, x, batch):
        return self.out.library(self._attend(self.qkv.library(x), batch).reshape(x.shape))


class Encoder(nn.Module):
    """BERT's encoder (LayerNorm behind each residual) or ViT's (before each branch, and a last one)."""

    def __init__(self, weights, layers, width, heads, norm_first, eps):
        super().__init__()
        self.norm_first = norm_first
        self.layers = nn.ModuleList()
        for _ in range(layers):
            before = Norm(weights, width, eps) if norm_first else None
            attention = Attention(weights, width, heads, together=norm_first)
            between = Norm(weights, width, eps)
            up, down = Linear([weights.linear(width, 4 * width)]), Linear([weights.linear(4 * width, width)])
            parts = {"attention": attention, "between": between, "up": up, "down": down}
            if before:
                parts["before"] = before
            else:
                parts["after"] = Norm(weights, width, eps)
            self.layers.append(nn.ModuleDict(parts))
        self.last = Norm(weights, width, eps) if norm_first else None

    def forward(self, x, mask=None):
        for layer in self.layers:
            if self.norm_first:
                x = x + layer["attention"](layer["before"](x), mask)
                x = x + layer["down"](F.gelu(layer["up"](layer["between"](x))))
            else:
                x = layer["between"](layer["attention"](x, mask) + x)
                x = layer["after"](layer["down"](F.gelu(layer["up"](x))) + x)
        return self.last(x) if self.norm_first else x

    def library(self, x):
        batch, shape = x.shape[0], x.shape
        x = x.reshape(-1, shape[-1])
        for layer in self.layers:
            if self.norm_first:
                x = x + layer["attention"].library(layer["before"](x), batch)
                x = x + layer["down"].library(layer["up"].library_gelu(layer["between"](x)))
            else:
                x = layer["between"](layer["attention"].library(x, batch) + x)
                x = layer["after"](layer["down"].library(layer["up"].library_gelu(x)) + x)
        return (self.last(x) if self.norm_first else x).view(shape)


class Body(nn.Module):
    """Hidden states in and out."""

    def __init__(self, model, layers, width, heads, norm_first, eps):
        super().__init__()
        weights = Weights(model)
        self.encoder = Encoder(weights, layers, width, heads, norm_first, eps)
        weights.end()

    def forward(self, x):
        return (self.encoder(x),)

    def library(self, x):
        return (self.encoder.library(x),)


class Bert(nn.Module):
    def __init__(self, model, layers, width, heads):
        super().__init__()
        weights = Weights(model)
        self.tables = Layer(words=weights.take("table", None, width), types=weights.take("table", 2, width),
                            positions=weights.take("table", 1, None, width))
        self.norm = Norm(weights, width, 1e-12)
        self.encoder = Encoder(weights, layers, width, heads, norm_first=False, eps=1e-12)
        weight, bias = weights.gemm(width, width)
        self.pooler = Linear([(weight, bias)])
        weights.end()

    def forward(self, ids, mask, types):
        words = F.embedding(ids, self.tables.words)
        x = self.norm(words + F.embedding(types, self.tables.types) + self.tables.positions)
        hidden = torch.finfo(x.dtype).min * (1 - mask[:, None, None, :].to(x.dtype))
        # One row for all queries; attention kernels want its full shape.
        x = self.encoder(x, hidden.expand(-1, 1, ids.shape[1], -1))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Vit(nn.Module):
    def __init__(self, model, layers, width, heads, patch=16):
        super().__init__()
        weights = Weights(model)
        self.patches = Layer(weight=weights.take("weight", width, 3, patch, patch), bias=weights.take("bias", width),
                             first=weights.take("class_token", 1, 1, width), positions=weights.take("positions", 1, None, width))
        self.encoder = Encoder(weights, layers, width, heads, norm_first=True, eps=1e-6)
        weight, bias = weights.gemm(width, 1000)
        self.head = Linear([(weight, bias)])
        weights.end()

    def forward(self, x):
        x = F.conv2d(x, self.patches.weight, self.patches.bias, self.patches.weight.shape[-1]).flatten(2).transpose(1, 2)
        x = torch.cat([self.patches.first.expand(x.shape[0], -1, -1), x], 1) + self.patches.positions
        return (self.head(self.encoder(x)[:, 0]),)


# --- what gpu_peers.py asks for ---


class Network:
    """One row: how to write its ONNX graphs, make its modules and draw its inputs."""

    def __init__(self, kind, name, batch, seq=None, layers=12, width=768, heads=12, size=224):
        self.kind, self.name, self.batch, self.seq = kind, name, batch, seq
        self.layers, self.width, self.heads, self.size = layers, width, heads, size
        self.row = f"{name}_b{batch}"

    @property
    def has_body(self):
        return self.kind != "resnet50"

    @property
    def channels_last(self):
        return self.kind == "resnet50"

    def onnx_model(self, body=False):
        """The ONNX graph; bench/models must be on Python's path."""
        import bert
        import resnet
        import vit
        if self.kind == "resnet50":
            return resnet.resnet50(self.batch, self.size).model()
        if self.kind == "bert":
            return bert.bert(self.row, self.layers, self.width, self.heads, self.seq, self.batch, body).model()
        return vit.vit(self.row, self.layers, self.width, self.heads, self.size, self.batch, body).model()

    def module(self, model, body=False):
        """In FP32 on the CPU."""
        if self.kind == "resnet50":
            module = ResNet50(model)
        elif body:
            module = Body(model, self.layers, self.width, self.heads, self.kind == "vit", 1e-6 if self.kind == "vit" else 1e-12)
        elif self.kind == "bert":
            module = Bert(model, self.layers, self.width, self.heads)
        else:
            module = Vit(model, self.layers, self.width, self.heads)
        return module.eval().requires_grad_(False)

    def inputs(self, generator, body=False):
        """By the names of the ONNX graph, in its order: FP32 values that FP16 holds, 64-bit integers. On the CPU."""
        if body:
            length = self.seq or (self.size // 16) ** 2 + 1
            shape = (self.batch, length, self.width)
            return {"hidden_states": torch.randn(shape, generator=generator).half().float()}
        if self.kind != "bert":
            return {"input": torch.randn((self.batch, 3, self.size, self.size), generator=generator).half().float()}
        shape = (self.batch, self.seq)
        counts = torch.randint(max(1, self.seq // 2), self.seq + 1, (self.batch, 1), generator=generator)
        return {"input_ids": torch.randint(0, 30522, shape, generator=generator),
                "attention_mask": (torch.arange(self.seq)[None] < counts).long(),
                "token_type_ids": torch.randint(0, 2, shape, generator=generator)}

    @property
    def attention_shape(self):
        length = self.seq or (self.size // 16) ** 2 + 1
        return self.batch, self.heads, length, self.width // self.heads


class Exported:
    """A row of a network of torch_networks.py: one module for all peers, and the ONNX file that PyTorch writes of it."""
    kind, seq, has_body, channels_last = "exported", None, False, False

    def __init__(self, key):
        self.key = key
        batch = re.fullmatch(r"(.+)_b(\d+)", key)
        self.name, self.batch = (batch[1], int(batch[2])) if batch else (key, 1)
        self.row = f"{self.name}_b{self.batch}"

    def original(self):
        return torch_networks.module(self.key)

    def onnx_file(self, path):
        torch_networks.export(self.key, self.original(), path)

    def module(self, model, body=False):
        """In FP32 on the CPU; convolutions' weights lie channels-last, as cuDNN's fast kernels want them."""
        class Tuple(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def forward(self, *inputs):
                return (self.module(*inputs),)

        module = self.original()
        first = next(iter(self.inputs(torch.Generator().manual_seed(1)).values()))
        if first.dim() in (4, 5):
            module = module.to(memory_format=torch.channels_last if first.dim() == 4 else torch.channels_last_3d)
        return Tuple(module).eval()

    def inputs(self, generator, body=False):
        return torch_networks.draw(self.key, generator)


class FromFile(Exported):
    """A row of a Python file that has NETS, by name what makes a module and what draws its inputs; make(name): both of them, seeded;
    export(module, inputs, path): writes the ONNX file, whose inputs are in0, in1, ..."""

    def __init__(self, key, file):
        super().__init__(key)
        self.file = file

    def original(self):
        return self.file.make(self.key)[0]

    def onnx_file(self, path):
        self.file.export(*self.file.make(self.key), path)

    def inputs(self, generator, body=False):
        torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
        drawn = self.file.NETS[self.key][1]()
        return {f"in{i}": x.half().float() if x.is_floating_point() else x for i, x in enumerate(drawn)}


def rows_of_file(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("networks_of_file", path)
    file = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = file  # torch.compile asks for the modules of the classes that it meets
    spec.loader.exec_module(file)
    return [FromFile(key, file) for key in file.NETS]


def exported_rows():
    return [Exported(name) for name in torch_networks.NAMES]


def recurrent_rows():
    return [Exported(name) for name in torch_networks.RECURRENT]


def rows():
    """The nine rows, in the table's order."""
    return [Network("resnet50", "resnet50", batch) for batch in (1, 32, 256)] + [
        Network("bert", "bert_base", batch, 128) for batch in (1, 32)] + [
        Network("bert", "bert_large", batch, 384, 24, 1024, 16) for batch in (1, 32)] + [
        Network("vit", "vit_b16", batch) for batch in (1, 64)]


def small_rows():
    """The same nine kinds in sizes for a machine without a GPU."""
    return [Network("resnet50", "resnet50", batch, size=64) for batch in (1, 2)] + [
        Network("bert", "bert_base", batch, 16, 2, 64, 2) for batch in (1, 3)] + [
        Network("vit", "vit_b16", batch, None, 2, 64, 2, 48) for batch in (1, 3)]
