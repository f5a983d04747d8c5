# SPDX-License-Identifier: Apache-2.0
"""From the files of a decoder to its engine, with the best caches that it can have."""

from __future__ import annotations

import dataclasses

from . import build, runs
from . import pages as pages_
from .encoder import Crossed, CrossedPages, CrossedWhole, Encoder
from .files import Files
from .interface import SIZES, interface_of, tensors_of_engine
from .settings import ids_of

# Tokens of a sequence where the caller does not say how many, and the model many or nothing.
USUAL_CAPACITY = 2048


class Loading:
    """load() sets plan, what has become of the one that was asked for; model, interface, runs; encoder, None where there is none, and what its decoder
    starts with."""

    def __init__(self, files: Files, cache, progress):
        self.files, self._cache, self._progress = files, cache, progress
        self.encoder, self.starts = None, ()

    def load(self, plan: build.Plan, pages: int | None, source_capacity: int | None) -> None:
        if pages and pages < plan.rows // build.ROWS:
            raise ValueError(f"pages: {pages} blocks of {build.ROWS} tokens, a sequence may have {plan.capacity} tokens")
        if pages != 0 and not self.files.encoder:
            plan = self._load_pages(plan, pages)
        if plan.blocks:
            self.plan = plan
        elif self.files.encoder:
            self._load_both(plan, pages, source_capacity)
        elif pages == 0 or not self._load_capped(plan):
            self._load(plan)

    def _load_capped(self, plan: build.Plan) -> bool:
        """Whether there is an engine with caches of the whole capacity, of a model whose own get longer."""
        asked = dataclasses.replace(plan, capped=True)
        try:
            self.model = build.decoder(self.files.onnx, asked, self._sizes(), self._cache, self._progress)
        except RuntimeError:
            return False
        self.interface = interface_of(tensors_of_engine(self.model.engine), self._sizes())
        self.plan = dataclasses.replace(asked, slots=1 if self.interface.batch == 1 else plan.slots)
        self.runs = runs.Slots(self.model, self.interface, self.plan)
        return runs.reads_well(self.runs)

    def _load_pages(self, plan: build.Plan, pages: int | None) -> build.Plan:
        """The engine with caches in pages; the plan has no blocks where that cannot be."""
        asked = dataclasses.replace(plan, wanted=bool(pages), blocks=pages or plan.slots * plan.rows // build.ROWS)
        failure: object = "tokens that are read one by one, and together, end in other logits"
        try:
            if asked.limit and asked.rows > asked.limit:
                raise RuntimeError(f"a capacity of {asked.capacity} tokens takes blocks for {asked.rows}, the model was made for {asked.limit}")
            self.model = build.decoder(self.files.onnx, asked, self._sizes(), self._cache, self._progress)
            self.interface = interface_of(tensors_of_engine(self.model.engine), self._sizes())
            rows = self.interface.tensors[self.interface.pages].shape[1] * build.ROWS
            asked = dataclasses.replace(asked, slots=1 if self.interface.batch == 1 else asked.slots, capacity=min(asked.capacity, rows))
            self.plan, self.runs = asked, pages_.Paged(self.model, self.interface, asked)
            if runs.reads_well(self.runs):
                return asked
        except RuntimeError as error:
            failure = error
        if pages:
            raise ValueError(f"pages: the caches of {self.files.onnx} cannot be in pages: {failure}")
        return plan

    def _load(self, plan: build.Plan) -> None:
        """The engine with the best caches that the model can have."""
        failure, config = None, self._sizes()
        for in_place in (True, False):
            asked = dataclasses.replace(plan, in_place=in_place)
            try:
                self.model = build.decoder(self.files.onnx, asked, config, self._cache, self._progress)
            except RuntimeError as error:
                failure = failure or error
                continue
            found = self.interface = interface_of(tensors_of_engine(self.model.engine), config)
            if found.crossed:
                name = found.states or found.states_mask or found.crosses[0].past
                raise ValueError(
                    f"{self.files.onnx}: input {name!r} is of an encoder; encoder_model.onnx is expected beside decoder_model_merged.onnx (or"
                    " decoder_with_past_model.onnx and decoder_model.onnx, or decoder_model.onnx)"
                )
            fixed = found.caches[0].capacity if found.caches else -1
            self.plan = dataclasses.replace(asked, capacity=min(plan.capacity, fixed) if fixed > 0 else plan.capacity)
            if not found.caches:
                self.runs = runs.Whole(self.model, found, self.plan)
                return
            if not in_place or runs.grows(self.model, found, self.plan):
                if fixed > 0 or runs.least(self.model, found):
                    continue  # what was built is for caches that stay as long as they are
                self.runs = runs.Growing(self.model, found, self.plan)
                return
            if found.batch == 1 or (found.order and not found.index):  # one place for all sequences
                self.plan = dataclasses.replace(self.plan, slots=1)
            self.runs = runs.Slots(self.model, found, self.plan)
            if runs.masks_well(self.runs):
                return
        if failure:
            unknown = "" if plan.limit else "; nothing says how many tokens the model was made for: capacity may"
            raise RuntimeError(f"{self.files.onnx}: {failure}{unknown}")
        raise ValueError(
            f"{self.files.onnx}: caches of one size only come out with another; the sizes of past_key_values have to be open"
        )

    def _sizes(self) -> dict[str, int]:
        return {n: v for n, v in self.files.config.items() if n in SIZES and isinstance(v, int)}

    def _load_both(self, plan: build.Plan, pages: int | None, most: int | None) -> None:
        """The engines of an encoder and its decoder."""
        files, known = self.files, self.files.most_sources()
        if most is None:
            most = min(known or USUAL_CAPACITY, USUAL_CAPACITY)
        elif known and most > known:
            raise ValueError(f"source_capacity: {most} tokens, the model was made for {known}")
        self.starts = self._start_tokens()
        sizes = {1: files.number("num_mel_bins"), 2: 2 * files.number("max_source_positions")}
        asked = dataclasses.replace(plan, in_place=False, sources=(1, most))
        self.encoder = Encoder(build.encoder(files.encoder, asked, sizes, self._cache, self._progress))
        asked = dataclasses.replace(asked, sources=self.encoder.states)
        if pages == 0 or not self._load_crossed(dataclasses.replace(asked, wanted=bool(pages), blocks=pages or plan.slots * plan.rows // build.ROWS), pages):
            self._load_crossed(asked, pages)

    def _load_crossed(self, plan: build.Plan, pages: int | None) -> bool:
        """Whether there is such a decoder behind the encoder."""
        files, refused = self.files, "tokens that are read one by one, and together, end in other logits"
        try:
            if plan.blocks and plan.limit and plan.rows > plan.limit:
                raise RuntimeError(f"a capacity of {plan.capacity} tokens takes blocks for {plan.rows}, the model was made for {plan.limit}")
            self.model = build.decoder(files.onnx, plan, self._sizes(), self._cache, self._progress)
        except RuntimeError as error:
            if not plan.blocks:
                raise
            refused = error
        else:
            self._set_crossed(plan)
            if not plan.blocks or self._crossed_reads_well():
                return True
        if pages:
            raise ValueError(f"pages: the caches of {files.onnx} cannot be in pages: {refused}")
        return False

    def _set_crossed(self, plan: build.Plan) -> None:
        files, config = self.files, self._sizes()
        self.plan, found = plan, interface_of(tensors_of_engine(self.model.engine), config)
        self.interface = found
        if not found.crossed:
            raise ValueError(f"{files.onnx} has no input from an encoder, and {files.encoder} is beside it")
        if not found.caches:
            self.runs = CrossedWhole(self.model, found, plan, self.encoder)
            return
        first = None
        if not found.branch and (found.crosses or files.first):
            if not files.first:
                raise ValueError(f"{files.onnx} needs decoder_model.onnx beside it, for the first tokens")
            alone = dataclasses.replace(plan, first=True, blocks=0, wanted=False)
            first = build.decoder(files.first, alone, config, self._cache, self._progress)
        kind = CrossedPages if plan.blocks else Crossed
        self.runs = kind(self.model, found, plan, self.encoder, first, config)

    def _crossed_reads_well(self) -> bool:
        self.runs.open(0, self.encoder.any_source())
        return runs.reads_well(self.runs)

    def _start_tokens(self) -> tuple[int, ...]:
        """What the decoder begins with, the start token first."""
        said = self.files.said
        start = said("decoder_start_token_id")
        start = ids_of("decoder_start_token_id", said("bos_token_id") if start is None else start)[:1]
        if not start:
            raise ValueError(f"{self.files.folder}: neither generation_config.json nor config.json says decoder_start_token_id")
        forced = said("forced_decoder_ids")
        if forced is None:
            return (*start, *ids_of("forced_bos_token_id", said("forced_bos_token_id"))[:1])
        pairs = forced if isinstance(forced, list) else [forced]
        if not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            raise ValueError("forced_decoder_ids: pairs of a place and an id of a token are expected")
        # Up to the first place that is free.
        taken = [p[1] for i, p in enumerate(pairs) if p[0] == i + 1 and all(q[1] is not None for q in pairs[: i + 1])]
        return (*start, *ids_of("forced_decoder_ids", taken))
