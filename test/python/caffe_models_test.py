# SPDX-License-Identifier: Apache-2.0
"""Whole Caffe models beside NumPy and recorded outputs, in the ways in which the samples of 8.5 use them: a LeNet that is trained here, with a mean file
and in INT8; GoogLeNet; SSD on MobileNet; Faster R-CNN; a segmentation network."""

import os
import pathlib
import struct

import numpy as np
import pytest
import tensorrt as trt

import caffe_files
from caffe_files import Net, Word, f, network_of, plan_of, run_plan
from caffe_layers_test import conv, deconv, flat_close, normal, pool, softmax
from small import QUIET, device_memory
from standard_plugins import close
from standard_plugins_detection_test import ssd
from standard_plugins_proposals_test import regions_of_image

MODELS = pathlib.Path(os.environ.get("TENSORWRIGHT_MODELS_DIR", "/nowhere"))
DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits"


# ---- a LeNet


def relu(x):
    return np.maximum(x, 0)


class LeNet:
    """Of pictures of 16 x 16: two convolutions with maximum pooling, two fully connected layers; trained by plain gradient descent."""

    def __init__(self, images, labels, seed=3, epochs=30):
        r = np.random.default_rng(seed)
        draw = lambda *shape: (r.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float64)
        self.w = {"conv1": draw(8, 1, 5, 5), "conv2": draw(16, 8, 3, 3), "ip1": draw(32, 64), "ip2": draw(10, 32)}
        self.b = {k: np.zeros(len(v)) for k, v in self.w.items()}
        speed = {k: 0.0 for k in [*self.w, *(k + "b" for k in self.w)]}
        for epoch in range(epochs):
            order = r.permutation(len(images))
            for at in range(0, len(images), 20):
                part = order[at : at + 20]
                gradients = self.gradients(images[part].astype(float), labels[part])
                for k in self.w:
                    for key, to, g in ((k, self.w, gradients[k][0]), (k + "b", self.b, gradients[k][1])):
                        speed[key] = 0.9 * speed[key] - 0.05 * 0.95**epoch * g
                        to[k] = to[k] + speed[key]
        self.w, self.b = ({k: v.astype(f) for k, v in d.items()} for d in (self.w, self.b))

    def layers(self, x):
        c1 = conv(x, self.w["conv1"], self.b["conv1"])
        p1 = pool(c1, "MAX", (2, 2), (2, 2), (0, 0))
        c2 = conv(p1, self.w["conv2"], self.b["conv2"])
        p2 = pool(c2, "MAX", (2, 2), (2, 2), (0, 0))
        flat = p2.reshape(len(x), -1)
        i1 = relu(flat @ self.w["ip1"].T.astype(float) + self.b["ip1"])
        return x, c1, p1, c2, p2, flat, i1, softmax(i1 @ self.w["ip2"].T.astype(float) + self.b["ip2"], 1)

    def gradients(self, x, labels):
        x, c1, p1, c2, p2, flat, i1, y = self.layers(x)
        g = y.copy()
        g[np.arange(len(labels)), labels] -= 1
        g /= len(labels)
        out = {"ip2": (g.T @ i1, g.sum(0))}
        g = (g @ self.w["ip2"]) * (i1 > 0)
        out["ip1"] = (g.T @ flat, g.sum(0))
        g = (g @ self.w["ip1"]).reshape(p2.shape)

        def unpooled(g, c, p):
            big = lambda v: v.repeat(2, 2).repeat(2, 3)
            return big(g) * (c == big(p))

        def of_kernel(x, g, k):
            view = np.lib.stride_tricks.sliding_window_view(x, g.shape[2:], (2, 3))
            return np.einsum("ncijhw,nkhw->kcij", view, g, optimize=True), g.sum((0, 2, 3))

        g = unpooled(g, c2, p2)
        out["conv2"] = of_kernel(p1, g, 3)
        full = np.pad(g, ((0, 0), (0, 0), (2, 2), (2, 2)))
        g = conv(full, self.w["conv2"][:, :, ::-1, ::-1].swapaxes(0, 1))
        g = unpooled(g, c1, p1)
        out["conv1"] = of_kernel(x, g, 5)
        return out

    def answer(self, x):
        return self.layers(x.astype(float))[-1]

    def caffe(self):
        """In the words of Caffe's own LeNet."""
        net = Net(form="old")
        net.text = """name: "LeNet"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape: { dim: 64 dim: 1 dim: 16 dim: 16 } }
}
"""
        fillers = dict(weight_filler=dict(type="xavier"), bias_filler=dict(type="constant"))
        rates = [dict(lr_mult=1), dict(lr_mult=2)]
        window = dict(pool=Word("MAX"), kernel_size=2, stride=2)
        net.layer("Convolution", "data", "conv1", [self.w["conv1"], self.b["conv1"]], "conv1", param=rates, convolution_param=dict(num_output=8, kernel_size=5, stride=1, **fillers))
        net.layer("Pooling", "conv1", "pool1", name="pool1", pooling_param=window)
        net.layer("Convolution", "pool1", "conv2", [self.w["conv2"], self.b["conv2"]], "conv2", param=rates, convolution_param=dict(num_output=16, kernel_size=3, stride=1, **fillers))
        net.layer("Pooling", "conv2", "pool2", name="pool2", pooling_param=window)
        net.layer("InnerProduct", "pool2", "ip1", [self.w["ip1"], self.b["ip1"]], "ip1", param=rates, inner_product_param=dict(num_output=32, **fillers))
        net.layer("ReLU", "ip1", "ip1", name="relu1")
        net.layer("InnerProduct", "ip1", "ip2", [self.w["ip2"], self.b["ip2"]], "ip2", param=rates, inner_product_param=dict(num_output=10, **fillers))
        net.layer("Softmax", "ip2", "prob", name="prob")
        return net


TRAINED = 260  # pictures; the others are read


@pytest.fixture(scope="module")
def digits():
    """(pictures [n, 1, 16, 16] of 0..1, labels)"""
    images = np.fromfile(DIGITS / "heldback_images.bin", np.uint8).astype(f) / 16
    labels = np.fromfile(DIGITS / "heldback_labels.bin", np.uint8)
    images = images.reshape(-1, 1, 8, 8).repeat(2, 2).repeat(2, 3)
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], labels[order].astype(int)


@pytest.fixture(scope="module")
def lenet(digits):
    """Trained on pictures less their mean, which the samples of 8.5 subtract."""
    images, labels = digits
    mean = images[:TRAINED].mean(0, dtype=np.float64).astype(f)
    return LeNet(images[:TRAINED] - mean, labels[:TRAINED]), mean


def right(answers, labels):
    return float((answers.reshape(len(labels), -1).argmax(1) == labels).mean())


def test_lenet(lenet, digits):
    model, mean = lenet
    images, labels = digits[0][TRAINED:] - mean, digits[1][TRAINED:]
    wanted = model.answer(images)
    assert right(wanted, labels) >= 0.85
    got = run_plan(plan_of(model.caffe(), ["prob"], batch=len(images)), {"data": images}, False)["prob"]
    flat_close(got, wanted, 2e-5)
    for i in range(3):
        flat_close(run_plan(plan_of(model.caffe(), ["prob"], explicit=True), {"data": images[i : i + 1]}, True)["prob"], wanted[i : i + 1], 2e-5)
    half = run_plan(plan_of(model.caffe(), ["prob"], batch=len(images), dtype=trt.float16), {"data": images}, False)["prob"]
    assert 0 < np.abs(half.reshape(wanted.shape) - wanted).max() < 5e-3


def test_the_mean_of_a_file(lenet, digits, tmp_path):
    """As sampleMNIST does: the mean image is read, becomes a constant, and is subtracted in the network."""
    model, mean = lenet
    net = model.caffe()
    paths = [tmp_path / name for name in ("mnist.prototxt", "mnist.caffemodel", "mnist_mean.binaryproto")]
    for path, content in zip(paths, (net.text.encode(), net.model, caffe_files.blob(mean[None], "old"))):
        path.write_bytes(content)
    builder = trt.Builder(QUIET)
    builder.max_batch_size = 8
    network = builder.create_network(0)
    parser = trt.CaffeParser()
    table = parser.parse(deploy=str(paths[0]), model=str(paths[1]), network=network, dtype=trt.float32)
    network.mark_output(table.find("prob"))
    image = parser.parse_binary_proto(str(paths[2]))
    assert image.shape == (1, 1, 16, 16) and (image == mean[None]).all()
    constant = network.add_constant((1, 16, 16), image[0])
    difference = network.add_elementwise(network.get_input(0), constant.get_output(0), trt.ElementWiseOperation.SUB)
    first = network.get_layer(0)
    assert first.name == "conv1"
    first.set_input(0, difference.get_output(0))
    del parser, table, image  # the network keeps what it needs
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    images = digits[0][TRAINED : TRAINED + 8]
    flat_close(run_plan(plan, {"data": images}, False)["prob"], model.answer(images - mean), 2e-5)


class BatchStream:
    """Files batch0, batch1, ... as the samples have them: four numbers of the shape, pictures, labels."""

    def __init__(self, folder, images=None, labels=None, size=20):
        self.folder, self.at = folder, 0
        for i in range(0, len(images) // size if images is not None else 0):
            part, marks = images[i * size : (i + 1) * size], labels[i * size : (i + 1) * size]
            with open(folder / f"batch{i}", "wb") as file:
                file.write(struct.pack("<4i", *part.shape) + part.astype("<f4").tobytes() + marks.astype("<f4").tobytes())

    def next(self):
        path = self.folder / f"batch{self.at}"
        if not path.exists():
            return None
        self.at += 1
        data = path.read_bytes()
        shape = struct.unpack_from("<4i", data)
        return np.frombuffer(data, "<f4", int(np.prod(shape)), 16).reshape(shape)


class Entropy(trt.IInt8EntropyCalibrator2):
    def __init__(self, stream, cache):
        super().__init__()
        self.stream, self.cache, self.held, self.count = stream, cache, None, 0

    def get_batch_size(self):
        return 20

    def get_batch(self, names):
        assert names == ["data"]
        self.held = self.stream.next()
        if self.held is None:
            return None
        address, self.held = device_memory().take(np.ascontiguousarray(self.held))
        self.count += 1
        return [address]

    def read_calibration_cache(self):
        return self.cache.read_bytes() if self.cache.exists() else None

    def write_calibration_cache(self, cache):
        self.cache.write_bytes(bytes(cache))


def test_int8_by_entropy(lenet, digits, tmp_path):
    """As sampleINT8 and int8_caffe_mnist do: batches of files, IInt8EntropyCalibrator2, a cache that a second build reads."""
    model, mean = lenet
    images, labels = digits[0] - mean, digits[1]
    cache, plans = tmp_path / "calibration.cache", []
    for turn in range(2):
        builder = trt.Builder(QUIET)
        builder.max_batch_size = 100
        network = builder.create_network(0)
        parser = trt.CaffeParser()
        net = model.caffe()
        table = parser.parse_buffer(net.text.encode(), net.model, network, trt.float32)
        network.mark_output(table.find("prob"))
        config = builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.INT8)
        calibrator = config.int8_calibrator = Entropy(BatchStream(tmp_path, images[:TRAINED], labels[:TRAINED]), cache)
        plans.append(builder.build_serialized_network(network, config))
        assert calibrator.count == (13 if turn == 0 else 0)
    lines = cache.read_text(encoding="ascii").splitlines()
    assert "EntropyCalibration2" in lines[0] and {line.split(":")[0] for line in lines[1:]} >= {"data", "conv1", "pool1", "ip2", "prob"}
    exact = model.answer(images[TRAINED:])
    for plan in plans:
        got = run_plan(plan, {"data": images[TRAINED:]}, False)["prob"]
        assert abs(right(got, labels[TRAINED:]) - right(exact, labels[TRAINED:])) <= 0.02


# ---- recorded outputs


def recorded(path):
    import gzip

    import onnx
    from onnx import numpy_helper

    tensor = onnx.TensorProto()
    tensor.ParseFromString((gzip.open if path.suffix == ".gz" else open)(path, "rb").read())
    return numpy_helper.to_array(tensor)


@pytest.mark.skipif(not (MODELS / "rfb320_caffe").is_dir(), reason="TENSORWRIGHT_MODELS_DIR names no folder of models")
@pytest.mark.parametrize("name, outputs", [("rfb320_caffe", ["boxes", "scores"]), ("mtcnn_det2", ["conv5-2", "prob1"])])
@pytest.mark.parametrize("explicit", [False, True])
def test_recorded_outputs(name, outputs, explicit):
    folder = MODELS / name
    net = Net()
    net.text, net.model = (folder / "deploy.prototxt").read_text(), (folder / "model.caffemodel").read_bytes()
    data = folder / "test_data_set_0"
    x = recorded(next(data.glob("input_0.pb*")))
    _, network, _ = network_of(net, outputs, explicit=explicit)
    got = run_plan(plan_of(net, outputs, explicit=explicit), {network.get_input(0).name: x}, explicit)
    for i, output in enumerate(outputs):
        wanted = recorded(data / f"output_{i}.pb")
        flat_close(got[output], wanted, 2e-5)


# ---- networks of the samples


class Values:
    """Blobs in NumPy, beside the layers of a Caffe network: each method adds a layer and computes it."""

    def __init__(self, seed, **inputs):
        self.random, self.net, self.v = np.random.default_rng(seed), Net(), {}
        for name, value in inputs.items():
            self.net.input(name, *value.shape[1:])
            self.v[name] = value.astype(float)

    def weights(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(f)

    def conv(self, x, top, outputs, k=1, stride=1, pad=0, group=1, bias=True):
        w, b = self.weights(outputs, self.v[x].shape[1] // group, k, k, scale=1.4), self.weights(outputs, scale=0.1)
        self.net.layer("Convolution", x, top, [w, b] if bias else [w], top, convolution_param=dict(num_output=outputs, kernel_size=k, stride=stride, pad=pad, group=group, bias_term=bias))
        self.v[top] = conv(self.v[x], w, b if bias else None, (stride,) * 2, (pad,) * 2, group=group)
        return top

    def norm(self, x):
        """BatchNorm and Scale, in place."""
        c = self.v[x].shape[1]
        mean, var, gamma, beta = self.weights(c, scale=0.1), np.abs(self.weights(c)) + f(0.5), self.weights(c, scale=0.3) + f(1), self.weights(c, scale=0.1)
        self.net.layer("BatchNorm", x, x, [mean, var, np.ones(1, f)], x + "/bn", batch_norm_param=dict(use_global_stats=True))
        self.net.layer("Scale", x, x, [gamma, beta], x + "/scale", scale_param=dict(bias_term=True))
        side = (slice(None), None, None)
        self.v[x] = (self.v[x] - mean[side]) / np.sqrt(var[side] + 1e-5) * gamma[side] + beta[side]
        return x

    def relu(self, x):
        self.net.layer("ReLU", x, x, name=x + "/relu")
        self.v[x] = relu(self.v[x])
        return x

    def pool(self, x, top, kind="MAX", k=3, stride=2, pad=0):
        self.net.layer("Pooling", x, top, name=top, pooling_param=dict(pool=Word(kind), kernel_size=k, stride=stride, pad=pad))
        self.v[top] = pool(self.v[x], kind, (k, k), (stride,) * 2, (pad,) * 2)
        return top

    def concat(self, parts, top, axis=None):
        self.net.layer("Concat", parts, top, name=top, concat_param={} if axis is None else dict(axis=axis))
        self.v[top] = np.concatenate([self.v[p] for p in parts], 1 if axis is None else axis)
        return top

    def lrn(self, x, top):
        self.net.layer("LRN", x, top, name=top, lrn_param=dict(local_size=5, alpha=1e-4, beta=0.75))
        squares = np.pad(self.v[x] ** 2, ((0, 0), (2, 2), (0, 0), (0, 0)))
        self.v[top] = self.v[x] / (1 + 1e-4 / 5 * sum(squares[:, i : i + self.v[x].shape[1]] for i in range(5))) ** 0.75
        return top

    def connected(self, x, top, outputs):
        v = self.v[x].reshape(len(self.v[x]), -1)
        w, b = self.weights(outputs, v.shape[1]), self.weights(outputs, scale=0.1)
        self.net.layer("InnerProduct", x, top, [w, b], top, inner_product_param=dict(num_output=outputs))
        self.v[top] = v @ w.T + b
        return top

    def run(self, outputs, explicit=False):
        arrays = {name: v for name, v in self.v.items() if f'input: "{name}"' in self.net.text}
        n = len(next(iter(arrays.values())))
        return run_plan(plan_of(self.net, outputs, explicit=explicit, batch=n), arrays, explicit)


@pytest.mark.parametrize("explicit", [False, True])
def test_googlenet(explicit):
    """All nine inception modules, an eighth as wide, in the names of BVLC's file."""
    n = 1 if explicit else 2
    m = Values(61, data=normal(60, n, 3, 224, 224, scale=1))
    x = m.relu(m.conv("data", "conv1/7x7_s2", 8, 7, 2, 3))
    x = m.lrn(m.pool(x, "pool1/3x3_s2"), "pool1/norm1")
    x = m.relu(m.conv(x, "conv2/3x3_reduce", 8))
    x = m.relu(m.conv(x, "conv2/3x3", 24, 3, pad=1))
    x = m.pool(m.lrn(x, "conv2/norm2"), "pool2/3x3_s2")
    widths = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
              "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}
    for name, w in widths.items():
        a, b, c, d, e, g = (v // 8 for v in w)
        at = f"inception_{name}/"
        parts = [m.relu(m.conv(x, at + "1x1", a))]
        parts.append(m.relu(m.conv(m.relu(m.conv(x, at + "3x3_reduce", b)), at + "3x3", c, 3, pad=1)))
        parts.append(m.relu(m.conv(m.relu(m.conv(x, at + "5x5_reduce", d)), at + "5x5", e, 5, pad=2)))
        parts.append(m.relu(m.conv(m.pool(x, at + "pool", k=3, stride=1, pad=1), at + "pool_proj", g)))
        x = m.concat(parts, at + "output")
        if name in ("3b", "4e"):
            x = m.pool(x, f"pool{int(name[0])}/3x3_s2")
    x = m.pool(x, "pool5/7x7_s1", "AVE", 7, 1)
    m.net.layer("Dropout", x, x, name="pool5/drop_7x7_s1", dropout_param=dict(dropout_ratio=0.4))
    x = m.connected(x, "loss3/classifier", 40)
    m.net.layer("Softmax", x, "prob", name="prob")
    wanted = softmax(m.v[x], 1)
    assert wanted.max() < 0.9 and wanted.std() > 1e-3
    flat_close(m.run(["prob"], explicit)["prob"], wanted, 2e-4)


@pytest.mark.parametrize("explicit", [False, True])
def test_ssd_on_mobilenet(explicit):
    """Depthwise convolutions, heads of two maps as chuanqi305's files have them: Permute, Flatten, PriorBox, Concat, Reshape, Softmax, DetectionOutput."""
    n, classes = 1 if explicit else 3, 4
    m = Values(63, data=normal(62, n, 3, 64, 64, scale=1))
    x = m.relu(m.norm(m.conv("data", "conv0", 8, 3, 2, 1, bias=False)))
    for i, (outputs, stride) in enumerate(((8, 2), (12, 2), (12, 1))):
        c = m.v[x].shape[1]
        x = m.relu(m.norm(m.conv(x, f"conv{i + 1}/dw", c, 3, stride, 1, group=c, bias=False)))
        x = m.relu(m.norm(m.conv(x, f"conv{i + 1}", outputs, bias=False)))
    maps = [x, m.relu(m.norm(m.conv(x, "conv14", 16, 3, 2, 1, bias=False)))]
    scales = m.weights(12) * f(0.2) + f(3)
    m.net.layer("Normalize", maps[0], "normed", [scales], "normed", norm_param=dict(across_spatial=False, channel_shared=False, scale_filler=dict(type="constant", value=20)))
    v = m.v[maps[0]]
    m.v["normed"] = v / np.sqrt((v * v).sum(1, keepdims=True) + 1e-10) * scales[:, None, None]
    maps[0] = "normed"
    least, most, variance, boxes, flat = [[14.0], [30.0]], [[], [44.0]], [0.1, 0.1, 0.2, 0.2], [], {"loc": [], "conf": []}
    priors = []
    for i, name in enumerate(maps):
        per_cell = 3 if i == 0 else 4
        for what, k in (("loc", 4), ("conf", classes)):
            head = m.conv(name, f"{name}_mbox_{what}", per_cell * k, 1)
            m.net.layer("Permute", head, head + "_perm", name=head + "_perm", permute_param=dict(order=[0, 2, 3, 1]))
            m.net.layer("Flatten", head + "_perm", head + "_flat", name=head + "_flat", flatten_param=dict(axis=1))
            m.v[head + "_flat"] = m.v[head].transpose(0, 2, 3, 1).reshape(n, -1)
            flat[what].append(head + "_flat")
        params = dict(min_size=least[i], max_size=most[i], aspect_ratio=[2.0], flip=True, clip=False, variance=variance, offset=0.5)
        priors.append(m.net.layer("PriorBox", [name, "data"], name + "_priors", prior_box_param=params))
        h, w = m.v[name].shape[2:]
        s = least[i][0]
        shapes = [(s, s)] + [(np.sqrt(s * b),) * 2 for b in most[i]] + [(s * np.sqrt(a), s / np.sqrt(a)) for a in (2.0, 0.5)]
        boxes += [k / 64 for r in range(h) for c in range(w) for a, b in shapes
                  for k in ((c + 0.5) * 64 / w - a / 2, (r + 0.5) * 64 / h - b / 2, (c + 0.5) * 64 / w + a / 2, (r + 0.5) * 64 / h + b / 2)]
    m.concat(flat["loc"], "mbox_loc", 1)
    m.concat(flat["conf"], "mbox_conf", 1)
    m.net.layer("Concat", priors, "mbox_priorbox", concat_param=dict(axis=2))
    m.net.layer("Reshape", "mbox_conf", "mbox_conf_reshape", reshape_param=dict(shape=dict(dim=[0, -1, classes])))
    m.net.layer("Softmax", "mbox_conf_reshape", "mbox_conf_softmax", softmax_param=dict(axis=2))
    m.net.layer("Flatten", "mbox_conf_softmax", "mbox_conf_flatten", flatten_param=dict(axis=1))
    params = dict(num_classes=classes, share_location=True, background_label_id=0, nms_param=dict(nms_threshold=0.45, top_k=50), code_type=Word("CENTER_SIZE"), keep_top_k=20, confidence_threshold=0.3)
    m.net.layer("DetectionOutput", ["mbox_loc", "mbox_conf_flatten", "mbox_priorbox"], ["detection_out", "keep_count"], detection_output_param=params,
                include=dict(phase=Word("TEST")))
    got = m.run(["detection_out", "keep_count"], explicit)
    count = len(boxes) // 4
    confidence = softmax(m.v["mbox_conf"].reshape(n, count, classes), 2)
    wanted, counts = ssd(m.v["mbox_loc"][..., None, None], confidence.reshape(n, -1, 1, 1), np.array([boxes, variance * count])[None, :, :, None], classes=classes, share=1, code=1, encoded=0,
                         sigmoid=0, keep=20, normalized=True, background=0, top=50, least=0.3, overlap=0.45)
    assert counts.min() > 3
    assert (got["keep_count"].view(np.int32).ravel() == counts.ravel()).all()
    close([got["detection_out"].reshape(wanted.shape)], [wanted], 1e-4)


def test_faster_rcnn():
    """As sampleFasterRCNN has it, implicit batch: a softmax without an axis over two scores, RPROI, fully connected layers on regions."""
    n, channels, h, w, stride, keep, classes, bins = 2, 5, 5, 7, 16, 12, 3, 2
    ratios, scales = [0.5, 1.0, 2.0], [1.0, 2.0]
    count = len(ratios) * len(scales)
    info = np.array([[[[80, 112, 1]]], [[[70, 100, 1.25]]]], f)
    m = Values(65, features=normal(64, n, channels, h, w, scale=1), im_info=info)
    x = m.relu(m.conv("features", "rpn", 8, 3, pad=1))
    m.conv(x, "rpn_cls_score", 2 * count)
    m.conv(x, "rpn_bbox_pred", 4 * count)
    m.net.layer("Reshape", "rpn_cls_score", "rpn_cls_score_reshape", reshape_param=dict(shape=dict(dim=[0, 2, -1, 0])))
    m.net.layer("Softmax", "rpn_cls_score_reshape", "rpn_cls_prob")
    m.net.layer("Reshape", "rpn_cls_prob", "rpn_cls_prob_reshape", reshape_param=dict(shape=dict(dim=[0, 2 * count, -1, 0])))
    m.net.layer("RPROI", ["rpn_cls_prob_reshape", "rpn_bbox_pred", "features", "im_info"], ["rois", "pool5"], name="RPROIFused",
                roi_pooling_param=dict(pooled_h=bins, pooled_w=bins, spatial_scale=1 / stride),
                region_proposal_param=dict(feature_stride=stride, prenms_top=100, nms_max_out=keep, anchor_ratio_count=3, anchor_scale_count=2, iou_threshold=0.7, min_box_size=16,
                                           anchor_scale=scales, anchor_ratio=ratios))
    inner, kind, side = m.weights(10, channels * bins * bins), m.weights(classes, 10), m.weights(4 * classes, 10)
    zeros = lambda k: np.zeros(k, f)
    m.net.layer("InnerProduct", "pool5", "fc6", [inner, zeros(10)], inner_product_param=dict(num_output=10))
    m.net.layer("ReLU", "fc6", "fc6")
    m.net.layer("Dropout", "fc6", "fc6")
    m.net.layer("InnerProduct", "fc6", "cls_score", [kind, zeros(classes)], inner_product_param=dict(num_output=classes))
    m.net.layer("InnerProduct", "fc6", "bbox_pred", [side, zeros(4 * classes)], inner_product_param=dict(num_output=4 * classes))
    m.net.layer("Softmax", "cls_score", "cls_prob")
    got = m.run(["bbox_pred", "cls_prob", "rois"])
    assert got["cls_prob"].shape == (n, keep, classes, 1, 1)
    s = softmax(m.v["rpn_cls_score"].reshape(n, 2, count, h * w), 1)[:, 1]
    d = m.v["rpn_bbox_pred"].reshape(n, count, 4, h * w).transpose(0, 1, 3, 2)
    wanted, parts = regions_of_image(s, d, info, m.v["features"], ratios, scales, stride, keep, bins)
    flat = relu(np.array(parts).reshape(n, keep, -1) @ inner.T)
    close([got["rois"].reshape(n, keep, 4)], [np.array(wanted)], 1e-4)
    close([got["cls_prob"].reshape(n, keep, -1), got["bbox_pred"].reshape(n, keep, -1)], [softmax(flat @ kind.T, 2), flat @ side.T], 1e-4)


@pytest.mark.parametrize("explicit", [False, True])
def test_segmentation(explicit):
    """As FCN-8s has it: a first convolution that pads by much, Deconvolution, Crop with offsets, Eltwise, Softmax over classes."""
    n = 1 if explicit else 2
    m = Values(67, data=normal(66, n, 3, 24, 20, scale=1))
    x = m.pool(m.relu(m.conv("data", "conv1", 8, 3, pad=12)), "pool1", k=2)
    low = m.conv(m.pool(x, "pool2", k=2), "score2", 5)
    w = m.weights(5, 5, 4, 4)
    m.net.layer("Deconvolution", low, "up", [w], convolution_param=dict(num_output=5, kernel_size=4, stride=2, bias_term=False))
    up = deconv(m.v[low], w, None, (2, 2))
    m.conv(x, "score1", 5)
    m.net.layer("Crop", ["up", "score1"], "cropped", crop_param=dict(axis=2, offset=1))
    m.net.layer("Eltwise", ["cropped", "score1"], "fused", eltwise_param=dict(operation=Word("SUM")))
    w2 = m.weights(5, 1, 8, 8)
    m.net.layer("Deconvolution", "fused", "big", [w2], convolution_param=dict(num_output=5, group=5, kernel_size=8, stride=2, bias_term=False))
    m.net.layer("Crop", ["big", "data"], "score", crop_param=dict(axis=2, offset=9))
    m.net.layer("Softmax", "score", "prob")
    h, wd = m.v["score1"].shape[2:]
    fused = up[:, :, 1 : 1 + h, 1 : 1 + wd] + m.v["score1"]
    wanted = softmax(deconv(fused, w2, None, (2, 2), group=5)[:, :, 9:33, 9:29], 1)
    flat_close(m.run(["prob"], explicit)["prob"], wanted, 1e-4)
