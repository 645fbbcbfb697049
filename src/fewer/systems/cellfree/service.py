"""Cell-free networks, served: a phone's few measurements in, the access points that should serve it out.

The page also asks what a phone at some place would measure and what the ideal choice is; that needs the simulator,
and so scipy, but neither torch nor the training data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline, RequestField
from fewer.serve.limits import Gate, Refusal
from fewer.serve.models import Model
from fewer.serve.service import Row, Schema, Service, object_schema
from fewer.serve.written import shares
from fewer.systems.cellfree.facts import Facts, access_points_of, world_of, written_numbers
from fewer.systems.cellfree.quality import choice_quality

__all__ = ["CellFreeService"]

_PIXELS = 96  # of the map's background, a side
_QUALITY_PIXELS = 64  # of the layer that shows where the choice is right, a side
_COARSE = 8  # places, a side, of which the page opens with the most typical
_LOUDEST = 10_000  # dB
_HEARD = "signal of the master, then of the access points that its phones measure; null for one not reported"
_FURTHEST_M = 1e8  # from the origin of whatever coordinates a network has
_SLOTS = 62  # whose bits a whole number holds
_TOGETHER = 256  # phones that are written at once: half a millisecond


class Place(BaseModel):
    """Where a phone is."""

    model_config = ConfigDict(extra="forbid", strict=True)
    x_m: float = Field(ge=-_FURTHEST_M, le=_FURTHEST_M, allow_inf_nan=False)
    y_m: float = Field(ge=-_FURTHEST_M, le=_FURTHEST_M, allow_inf_nan=False)
    model: str | None = None


class CellFreeService(Service):
    """`{"master": 17, "rsrp_db": [-81.2, -88.0, null]}`: the master first, null for what was not reported."""

    title = "Walk a phone across the map"
    reads_rows = True
    short_numbers = 6144  # written from arrays: 500 phones take a millisecond

    def __init__(self, task: str, models: Sequence[Model]) -> None:
        super().__init__(task, models)
        self.worlds = {model.name: world_of(model) for model in models}
        self._facts = {model.name: Facts.of(model, self.worlds[model.name]) for model in models}

    def fields(self, model: Model) -> tuple[RequestField, ...]:
        return (
            RequestField("master", (), "int64", meaning="number of the access point that the phone hears best"),
            RequestField("rsrp_db", model.inputs[1].shape, "float32", gaps=True, unit="dB", meaning=_HEARD),
        )

    def answers(self, model: Model) -> dict[str, str]:
        return {
            "master": "as asked",
            "probabilities": "of each candidate, from 0 to 1, that it should serve the phone",
            "candidates": "numbers of access points near the master, the master first",
            "access_points": "those of them that should serve the phone",
            "phones": "a list of such answers, where several phones were asked for",
        }

    def inputs(self, model: Model, given: Mapping[str, Array]) -> list[Array]:
        return self._phones(model, given["master"], given["rsrp_db"])

    def row(self, model: Model, fields: Mapping[str, Any]) -> Row | None:
        master, rsrp, facts = fields.get("master"), fields.get("rsrp_db"), self._facts[model.name]
        if len(fields) != 2 or type(master) is not int or type(rsrp) is not list or len(rsrp) != facts.measured:
            return None
        if not 0 <= master < facts.count or rsrp[0] is None:
            return None
        values, reported = [], []
        for value in rsrp:
            if value is None:
                values.append(0.0)
                reported.append(0.0)
            elif type(value) in (float, int) and -_LOUDEST <= value <= _LOUDEST:
                values.append(value)
                reported.append(1.0)
            else:
                return None
        return master, values, reported

    def row_answer(self, model: Model, row: Row, output: Any) -> bytes:
        facts, total = self._facts[model.name], sum(output)
        if facts.candidates is None or total - total != 0:  # NaN, for which JSON has no number
            return json.dumps(self._phone(model, row[0], output)).encode()
        candidates = facts.candidates[row[0]]
        chosen = [c for c, p in zip(candidates, output) if p >= 0.5 or c == row[0]]
        shares = facts.shares % tuple(output)
        return (
            f'{{"master":{row[0]},"probabilities":[{shares}],"candidates":{written_numbers(candidates)},'
            f'"access_points":{written_numbers(chosen)}{facts.called(chosen)}}}'
        ).encode()

    def _phones(self, model: Model, master: Array, rsrp: Array) -> list[Array]:
        reported = rsrp == rsrp  # NaN alone differs from itself
        if not reported[:, 0].all():
            raise Refusal(422, "rsrp_db without the master's signal, which comes first")
        if not reported.all():
            rsrp = np.where(reported, rsrp, 0.0)
        # no radio reports beyond this, and float32 holds it
        if rsrp.max() > _LOUDEST or rsrp.min() < -_LOUDEST:
            raise Refusal(422, f"rsrp_db beyond {_LOUDEST:g} dB")
        given = {"master": master, "rsrp_db": rsrp.astype(np.float32), "reported": reported.astype(np.float32)}
        return [given[item.name] for item in model.inputs]

    def check(self, model: Model, arrays: Sequence[Array]) -> None:
        count = self._facts[model.name].count
        if arrays[0].min() < 0 or arrays[0].max() >= count:
            raise Refusal(422, f"a master beyond the network; expected 0 to {count - 1}")

    def answer(self, model: Model, arrays: Sequence[Array], output: Array, single: bool) -> dict[str, Any]:
        phones = [self._phone(model, int(master), row) for master, row in zip(arrays[0], output.tolist())]
        return phones[0] if single else {"phones": phones}

    def written(
        self, model: Model, arrays: Sequence[Array], output: Array, *, single: bool, deadline: Deadline
    ) -> bytes:
        facts = self._facts[model.name]
        plain = not single and output.shape[1] <= _SLOTS and bool((output >= 0).all() and (output <= 1).all())
        if facts.candidates is None or not plain:
            return super().written(model, arrays, output, single=single, deadline=deadline)
        chosen = ((output >= 0.5) @ (1 << np.arange(output.shape[1]))).tolist()
        masters, written = arrays[0].tolist(), []
        for first in range(0, len(masters), _TOGETHER):
            deadline.check()
            part = slice(first, first + _TOGETHER)
            written += [
                f'{{"master":{master},"probabilities":[{row}{facts.ending(facts.candidates, master, bits)}'
                for master, bits, row in zip(masters[part], chosen[part], shares(output[part]))
            ]
        return f'{{"phones":[{",".join(written)}]}}'.encode()

    def _phone(self, model: Model, master: int, probabilities: list[float]) -> dict[str, Any]:
        """The master always serves; others from a probability of one half."""
        known = self._facts[model.name].candidates
        said = {"master": master, "probabilities": [round(p, 6) if math.isfinite(p) else None for p in probabilities]}
        if known is None:
            return said
        candidates = known[master]
        chosen = [c for slot, (c, p) in enumerate(zip(candidates, probabilities)) if slot == 0 or p >= 0.5]
        names = self._facts[model.name].names
        called = {"names": [names[c] for c in chosen]} if names else {}
        return {**said, "candidates": candidates, "access_points": chosen, **called}

    def request_schema(self) -> Schema:
        model = next(iter(self.models.values()))
        count, measured = access_points_of(model), model.inputs[1].shape[0]
        master: Schema = {"type": "integer", "minimum": 0, "maximum": count - 1}
        level: Schema = {"type": ["number", "null"], "minimum": -_LOUDEST, "maximum": _LOUDEST}
        row: Schema = {
            "type": "array",
            "prefixItems": [{**level, "type": "number"}],
            "items": level,
            "minItems": measured,
            "maxItems": measured,
            "description": "signal of the master and of the access points its phones measure, in dB",
        }
        many = object_schema(
            {"master": {"type": "array", "items": master, "minItems": 1}, "rsrp_db": {"type": "array", "items": row}}
        )
        return {"oneOf": [object_schema({"master": master, "rsrp_db": row}), many]}

    def answer_schema(self) -> Schema:
        whole: Schema = {"type": "array", "items": {"type": "integer"}}
        shares: Schema = {"type": "array", "items": {"type": ["number", "null"]}}
        fields = {"master": {"type": "integer"}, "probabilities": shares, "candidates": whole, "access_points": whole,
                  "names": {"type": "array", "items": {"type": "string"}}}  # fmt: skip
        phone = object_schema(fields, optional=("candidates", "access_points", "names"))
        return {"oneOf": [phone, object_schema({"phones": {"type": "array", "items": phone}})]}

    def router(self, gate: Gate) -> APIRouter:
        router = APIRouter(prefix="/v1/cellfree", tags=["cellfree"])

        @router.get("/map", summary="The area, its access points and how strong the strongest is everywhere")
        async def area(model: Annotated[str | None, Query(max_length=200)] = None) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.map, model)

        @router.get("/quality", summary="Where in the area the choice is right, and how much of the signal it collects")
        async def quality(model: Annotated[str | None, Query(max_length=200)] = None) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.quality, model)

        @router.post("/place", summary="What a phone at a place measures, who should serve it, and who ideally would")
        async def place(place: Place) -> dict[str, Any]:
            async with gate.entered():
                return await run_in_threadpool(self.place, place)

        return router

    def map(self, name: str | None) -> dict[str, Any]:
        """What the page draws before anything is clicked."""
        model = self.model(name)
        world = self._known(model)
        deployment = world.deployment
        # rows go with y
        strength = deployment.audible(deployment.grid(_PIXELS))[1].max(axis=1).reshape(_PIXELS, _PIXELS)
        return {
            "model": model.name,
            "side_m": float(deployment.side_m),
            "corner_m": list(deployment.corner_m),
            "threshold_db": float(world.settings.threshold_db),
            "sends_dbm": None if world.settings.maps else 0,  # simulated gains are what 1 mW is received as
            "measured": int(world.settings.measured),
            "candidates": int(world.settings.candidates),
            "access_points": np.round(deployment.access_points, 2).tolist(),
            "names": [deployment.name(index) for index in range(len(deployment))],
            "strength_db": np.round(strength).astype(int).tolist(),
        }

    def quality(self, name: str | None) -> dict[str, Any]:
        """A phone at every place of a grid: whom the choice misses and whom it takes needlessly."""
        model = self.model(name)
        world = self._known(model)
        places = world.deployment.grid(_QUALITY_PIXELS)
        survey = world.survey_at(places, np.random.default_rng(0))
        arrays = self._phones(model, survey.master.astype(np.int64), np.where(survey.reported, survey.rsrp_db, np.nan))
        chosen = model.predict(arrays) >= 0.5
        chosen[:, 0] = True
        gain = world.deployment.audible(places)[1]
        judged = partial(choice_quality, survey.gap_db, threshold_db=world.settings.threshold_db, side=_QUALITY_PIXELS)
        found = judged(chosen, gain)
        clusters = world.clusters
        every = (clusters.candidates[survey.master][:, :, None] == clusters.measured[survey.master][:, None]).any(
            axis=2
        )
        naive = judged(every, gain)  # who asks no network and lets all serve that were measured
        found["all_measured"] = {name: naive[name] for name in ("signal", "right")}
        return {**found, "typical": self._typical(model, world, found["signal"])}

    def _typical(self, model: Model, world: Any, signal: float) -> dict[str, float]:
        """Where a phone's share of the signal is nearest to the mean of the whole area."""

        def apart(place: Place) -> float:
            share: float = self.place(place)["signal"]["chosen"]
            return abs(share - signal)

        where = np.round(world.deployment.grid(_COARSE), 3).tolist()
        nearest = min((Place(x_m=x, y_m=y, model=model.name) for x, y in where), key=apart)
        return {"x_m": nearest.x_m, "y_m": nearest.y_m}

    def place(self, place: Place) -> dict[str, Any]:
        """A phone at a place: reports, choice, truth."""
        model = self.model(place.model)
        world = self._known(model)
        (west, south), side = world.deployment.corner_m, world.deployment.side_m
        if not (0 <= place.x_m - west <= side and 0 <= place.y_m - south <= side):
            area = f"{west:g} to {west + side:g} m and {south:g} to {south + side:g} m"
            raise Refusal(422, f"a place at {place.x_m:g} m, {place.y_m:g} m; expected {area}")
        where = np.array([[place.x_m, place.y_m]])
        # the same place reports the same again
        seed = (round((place.x_m - west) * 1e3) + round((place.y_m - south) * 1e3)) % 2**63
        survey = world.survey_at(where, np.random.default_rng(seed))
        arrays = self._phones(model, survey.master.astype(np.int64), np.where(survey.reported, survey.rsrp_db, np.nan))
        master = int(survey.master[0])
        near, gain = world.deployment.audible(where)
        serves = gain[0].max() - gain[0] < world.settings.threshold_db
        ideal = near[0][serves][np.argsort(-gain[0][serves], kind="stable")]
        candidates = world.clusters.candidates[master]
        said = self._phone(model, master, model.predict(arrays)[0].tolist())
        power = 10 ** ((gain[0] - gain[0].max()) / 10)  # of the master's
        caught = serves & np.isin(near[0], said["access_points"])
        return {
            **said,
            "signal": {
                "chosen": round(float(power[caught].sum() / power[serves].sum()), 4),
                "master": round(float(1 / power[serves].sum()), 4),
            },
            "measured": world.clusters.measured[master].tolist(),
            "rsrp_db": [round(float(v), 1) if r else None for v, r in zip(survey.rsrp_db[0], survey.reported[0])],
            "ideal": ideal.tolist(),
            "below_master_db": {
                str(int(a)): round(float(gain[0].max() - world.deployment.gain_to(where, np.array([[a]]))[0, 0]), 1)
                for a in {*ideal.tolist(), *candidates.tolist()}
            },
        }

    def _known(self, model: Model) -> Any:
        world = self.worlds[model.name]
        if isinstance(world, str):
            raise Refusal(404, f"no map of {model.name}: {world}")
        return world
