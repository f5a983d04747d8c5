#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: torch_networks.py NAME...|all|recurrent|packages --out DIR [--list [GROUP]]

Networks as users export them, from torchvision, timm and transformers, and four that are written here, with seeded random weights: 3-D,
grouped, dilated and transposed convolutions, attention over windows and with few key heads, norms of all kinds. Nothing in the engine
may be made for these alone. The group `recurrent`: LSTM and GRU of 1 and 2 layers over 100 steps, CELL_HIDDEN_lLAYERS_bBATCH. Writes DIR/NAME.onnx (opset 17), with what bench/cpu_peers.py reads in its metadata.
Needs PyTorch, torchvision, timm, transformers and onnx; --list needs nothing. GROUP: all (the twelve, without one) or recurrent.
"""
import argparse
import os
import sys
import warnings

import package_networks


def _modules():
    """The four networks that no package has; PyTorch is needed from here on."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class RmsNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class DecoderLayer(nn.Module):
        """Rotary positions, fewer key heads than query heads, a gated unit."""

        def __init__(self, width, heads, key_heads, hidden):
            super().__init__()
            self.heads, self.key_heads, self.head = heads, key_heads, width // heads
            self.before, self.between = RmsNorm(width), RmsNorm(width)
            self.query = nn.Linear(width, width, bias=False)
            self.key = nn.Linear(width, key_heads * self.head, bias=False)
            self.value = nn.Linear(width, key_heads * self.head, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(hidden, width, bias=False)

        def split(self, x, heads):
            return x.view(x.shape[0], x.shape[1], heads, self.head).transpose(1, 2)

        def repeat(self, x):
            batch, heads, length, head = x.shape
            times = self.heads // heads
            return x[:, :, None].expand(batch, heads, times, length, head).reshape(batch, self.heads, length, head)

        def forward(self, x, turn, mask):
            y = self.before(x)
            q, k = turn(self.split(self.query(y), self.heads)), turn(self.split(self.key(y), self.key_heads))
            k, v = self.repeat(k), self.repeat(self.split(self.value(y), self.key_heads))
            weights = torch.softmax(q @ k.transpose(-1, -2) / self.head ** 0.5 + mask, -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
            y = self.between(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Decoder(nn.Module):
        """A language model's prefill: 256 tokens at once under a causal mask."""

        def __init__(self, width=1024, heads=16, key_heads=4, hidden=2816, layers=8, words=2000, length=256):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.layers = nn.ModuleList(DecoderLayer(width, heads, key_heads, hidden) for _ in range(layers))
            self.norm, self.logits = RmsNorm(width), nn.Linear(width, words, bias=False)
            head = width // heads
            rates = 1e4 ** (-torch.arange(0, head, 2).float() / head)
            angles = torch.outer(torch.arange(length).float(), rates).repeat(1, 2)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            self.register_buffer("mask", torch.full((length, length), -1e4).triu(1))

        def turn(self, x):
            first, second = x.chunk(2, -1)
            return x * self.cos + torch.cat([-second, first], -1) * self.sin

        def forward(self, ids):
            x = self.words(ids)
            for layer in self.layers:
                x = layer(x, self.turn, self.mask)
            return self.logits(self.norm(x))

    class CrossAttention(nn.Module):
        def __init__(self, width, context, heads=8):
            super().__init__()
            self.heads = heads
            self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width)
            self.key, self.value = (nn.Linear(context, width, bias=False) for _ in range(2))

        def forward(self, x, context):
            split = lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
            y = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(context)), split(self.value(context)))
            return self.out(y.transpose(1, 2).reshape(x.shape))

    class Residual(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm, self.conv = nn.GroupNorm(32, channels), nn.Conv2d(channels, channels, 3, padding=1)

        def forward(self, x):
            return x + self.conv(F.silu(self.norm(x)))

    class DiffusionBlock(nn.Module):
        """One level of a diffusion model's U-Net: down, attention to itself and to a text, a gated unit, up again."""

        def __init__(self, channels=320, context=768):
            super().__init__()
            width = 2 * channels
            self.first, self.last = nn.Conv2d(4, channels, 3, padding=1), nn.Conv2d(channels, 4, 3, padding=1)
            self.down, self.up = nn.Conv2d(channels, width, 3, 2, 1), nn.Conv2d(width, channels, 3, padding=1)
            self.time = nn.Linear(1280, width)
            self.fine, self.coarse = Residual(channels), Residual(width)
            self.norm = nn.GroupNorm(32, width)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.own, self.cross = CrossAttention(width, width), CrossAttention(width, context)
            self.gated, self.narrow = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)
            self.project = nn.Conv2d(width, width, 1)

        def forward(self, x, time, context):
            fine = self.fine(self.first(x))
            x = self.coarse(self.down(fine) + self.time(F.silu(time))[:, :, None, None])
            batch, width, height, columns = x.shape
            y = self.norm(x).flatten(2).transpose(1, 2)
            z = self.norms[0](y)
            y = y + self.own(z, z)
            y = y + self.cross(self.norms[1](y), context)
            up, gate = self.gated(self.norms[2](y)).chunk(2, -1)
            y = y + self.narrow(up * F.gelu(gate))
            x = x + self.project(y.transpose(1, 2).reshape(batch, width, height, columns))
            return self.last(F.silu(self.up(F.interpolate(x, scale_factor=2.0, mode="nearest")) + fine))

    def generator():
        layers, widths = [], (100, 512, 256, 128, 64)
        for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(outputs),
                       nn.ReLU()]
        return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())

    class TemporalConvolutions(nn.Module):
        def __init__(self, bands=80, channels=128, layers=6, classes=40):
            super().__init__()
            self.first = nn.Conv1d(bands, channels, 5, padding=2)
            self.layers = nn.ModuleList(nn.Sequential(
                nn.Conv1d(channels, channels, 3, padding=2 ** i, dilation=2 ** i), nn.BatchNorm1d(channels), nn.PReLU(),
                nn.Conv1d(channels, channels, 1)) for i in range(layers))
            self.last = nn.Linear(channels, classes)

        def forward(self, x):
            x = self.first(x)
            for layer in self.layers:
                x = x + layer(x)
            return self.last(x.transpose(1, 2)).log_softmax(-1)

    class Recurrent(nn.Module):
        """The outputs of all steps; the final states are dropped."""

        def __init__(self, cell, hidden, layers):
            super().__init__()
            self.cell = getattr(nn, cell.upper())(hidden, hidden, layers)

        def forward(self, x):
            return self.cell(x)[0]

    return {"recurrent": Recurrent, "llama_like": Decoder, "sd_block": DiffusionBlock, "dcgan_b16": generator, "tcn_audio": TemporalConvolutions}


def _transformer(kind, **options):
    """A model of transformers whose forward gives its first tensor alone."""
    import transformers
    from torch import nn

    class FirstOutput(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x, return_dict=False)[0]

    config = getattr(transformers, kind.removesuffix("Encoder") + "Config")(**options)
    return FirstOutput(getattr(transformers, kind + "Model")._from_config(config, attn_implementation="eager"))


def _package(package, name):
    if package == "torchvision":
        import torchvision
        from torch import nn

        class Dense(nn.Module):
            """A network whose result is a dictionary, of which the map is taken."""

            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, x):
                return self.model(x)["out"]

        if hasattr(torchvision.models.segmentation, name):
            return Dense(torchvision.models.get_model(name, weights=None, weights_backbone=None, aux_loss=False))
        return torchvision.models.get_model(name, weights=None)
    import timm
    return timm.create_model(name, pretrained=False)


# name: (how to make the module, its inputs: a shape for normal values, or a shape and limits for integers)
IMAGE = ((1, 3, 224, 224),)
SPECS = {
    "resnext50": (lambda: _package("torchvision", "resnext50_32x4d"), IMAGE),
    "r3d_18": (lambda: _package("torchvision", "r3d_18"), ((1, 3, 8, 112, 112),)),
    "dcgan_b16": (lambda: _modules()["dcgan_b16"](), ((16, 100, 1, 1),)),
    "sd_block": (lambda: _modules()["sd_block"](), ((1, 4, 64, 64), (1, 1280), (1, 77, 768))),
    "llama_like": (lambda: _modules()["llama_like"](), (((1, 256), 5, 1000),)),
    "mobilevit_s": (lambda: _package("timm", "mobilevit_s"), ((1, 3, 256, 256),)),
    "wav2vec2": (lambda: _transformer("Wav2Vec2"), ((1, 16000),)),
    "swin_t": (lambda: _package("torchvision", "swin_t"), IMAGE),
    "roberta": (lambda: _transformer("Roberta", vocab_size=5000), (((1, 128), 5, 1000),)),
    "hrnet_w18": (lambda: _package("timm", "hrnet_w18"), IMAGE),
    "tcn_audio": (lambda: _modules()["tcn_audio"](), ((1, 80, 500),)),
    "regnet_y_800mf": (lambda: _package("torchvision", "regnet_y_800mf"), IMAGE),
}
NAMES = tuple(SPECS)
STEPS = 100
RECURRENT = tuple(f"{cell}_{hidden}_l{layers}_b{batch}" for cell in ("lstm", "gru") for hidden in (128, 512, 1024) for layers in (1, 2)
                  for batch in (1, 32))
PACKAGES = package_networks.specs(_package, _transformer)
SPECS.update(PACKAGES)
GROUPS = {"all": NAMES, "recurrent": RECURRENT, "packages": tuple(PACKAGES)}


def _recurrent(name):
    cell, hidden, layers, batch = name.split("_")
    return (lambda: _modules()["recurrent"](cell, int(hidden), int(layers[1:])), ((STEPS, int(batch[1:]), int(hidden)),))


SPECS.update((name, _recurrent(name)) for name in RECURRENT)


def draw(name, generator):
    """Inputs by name, in the module's order: FP32 values that FP16 holds, or 64-bit integers."""
    import torch
    values = {}
    for i, spec in enumerate(SPECS[name][1]):
        if isinstance(spec[0], tuple):
            shape, low, high = spec
            values[f"in{i}"] = torch.randint(low, high, shape, generator=generator)
        else:
            values[f"in{i}"] = torch.randn(spec, generator=generator).half().float()
    return values


def module(name):
    """The network in FP32 on the CPU, the same weights each time. Batch normalizations hold the statistics of random inputs: with those
    of a fresh network the values of deep ones vanish or explode."""
    import torch
    seed = sum(name.encode())
    torch.manual_seed(seed)
    network = SPECS[name][0]()
    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        generator = torch.Generator().manual_seed(seed)
        for norm in norms:
            norm.momentum = None
            norm.reset_running_stats()
        network.train()
        with torch.no_grad():
            for _ in range(8):
                values = [torch.cat([v, torch.randn(v.shape, generator=generator)]) for v in draw(name, generator).values()]
                network(*values)
    return network.eval().requires_grad_(False)


def export(name, network, path):
    """ONNX, by the exporter that traces; by the one that captures graphs where that fails."""
    import torch
    values = draw(name, torch.Generator().manual_seed(1))
    names = {"input_names": list(values), "output_names": ["out0"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(network, tuple(values.values()), path, opset_version=17, dynamo=False, **names)
        except Exception as error:
            print(f"{name}: {type(error).__name__} in the tracing exporter, so the other one writes it", file=sys.stderr)
            torch.onnx.export(network, tuple(values.values()), path, opset_version=18, dynamo=True, external_data=False, **names)


def write(name, folder):
    """DIR/NAME.onnx, whole or not at all."""
    import onnx
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    path, network = os.path.join(folder, name + ".onnx"), module(name)
    export(name, network, path + ".part")
    model = onnx.load(path + ".part")
    with FlopCounterMode(display=False) as counter:
        network(*draw(name, torch.Generator().manual_seed(1)).values())
    facts = {"macs": str(counter.get_total_flops() // 2)}
    for i, spec in enumerate(SPECS[name][1]):
        facts[f"input:in{i}"] = f"int {spec[1]} {spec[2]}" if isinstance(spec[0], tuple) else "normal"
    onnx.helper.set_model_props(model, facts)
    onnx.save_model(model, path + ".part")
    os.replace(path + ".part", path)
    print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB, {counter.get_total_flops() / 2e9:.2f} GMAC, {len(model.graph.node)} nodes",
          flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=".")
    parser.add_argument("--list", nargs="?", const="all", choices=GROUPS)
    options = parser.parse_args()
    if options.list:
        print("\n".join(GROUPS[options.list]))
        return
    names = [n for name in options.names for n in GROUPS.get(name, (name,))]
    unknown = [n for n in names if n not in SPECS]
    if unknown or not names:
        parser.error(f"unknown network {unknown[0]!r} (known: {', '.join(SPECS)})" if unknown else "no network named")
    os.makedirs(options.out, exist_ok=True)
    for name in names:
        write(name, options.out)


if __name__ == "__main__":
    main()
