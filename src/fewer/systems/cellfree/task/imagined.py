"""Phones imagined on the map that real ones drew: as many as one wants, each in a world that the record allows.

At a place drawn at random the record leaves a normal distribution over what is heard there. A phone imagined with one
draw of it has reports and labels as likely as kriging believes, so a network that learns from such phones learns
kriging's answer, the average over all places and draws that fit the reports, and computes it at its own cost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from fewer.systems.cellfree.task.arrays import Floats, Integers, generator
from fewer.systems.cellfree.task.survey import Survey, World
from fewer.systems.cellfree.task.world.given import DriveRadio
from fewer.systems.cellfree.task.world.interpolation import Interpolation

__all__ = ["Imagined"]

_PER_PHONE, _MOST = 40, 2_000_000  # imagined for each real one, and in all: half a kilobyte each
_VALUES = 400_000  # places x access points drawn at once; fewer places than a deployment computes at once
_ASIDE = 0.25  # of the distance at which shadowing decorrelates: how far phones are from the places of a log


class _Draw:
    """One draw of what is heard at some phones' places: a `Radio` for these phones and where they were before."""

    def __init__(self, known: Interpolation, count: int, random: np.random.Generator) -> None:
        p = known.propagation
        common = random.standard_normal((count, 1)) * p.site_correlation**0.5
        own = random.standard_normal((count, len(known.deployment))) * (1 - p.site_correlation) ** 0.5
        self._known, self._deviation = known, p.deviation_db * (common + own)  # (count, L)
        self._last: tuple[Floats, Floats] | None = None

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """See `Radio.gain_db`."""
        if self._last is None or not np.array_equal(self._last[0], phones):
            expected, open_share = self._known.at(phones)
            self._last = phones, expected + np.sqrt(open_share)[:, None] * self._deviation
        found = self._last[1]
        return found if links is None else np.take_along_axis(found, links, axis=1)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """See `Radio.places`."""
        return self._known.deployment.radio.places(random, count, part=part)


class Imagined:
    """Phones of the map that a survey's phones drew, in lots that are made when somebody asks for them."""

    def __init__(self, world: World, survey: Survey) -> None:
        self.world, self.count = world, min(_PER_PHONE * len(survey), _MOST)
        self.per_lot = max(1, min(4000, _VALUES // len(world.deployment), self.count))
        self._survey = survey

    @cached_property
    def _known(self) -> Interpolation:
        return Interpolation(self.world.deployment, self._survey.phones, error_db=self.world.settings.error_db)

    def lot(self, number: int) -> Survey:
        """The same phones whenever asked, with reports disturbed as the settings say."""
        deployment, known = self.world.deployment, self._known
        count = min(self.per_lot, self.count - number * self.per_lot)
        random = generator(deployment.seed, f"imagined/{number}")
        places = deployment.phones(count, part=f"imagined/{number}")
        if isinstance(deployment.radio, DriveRadio):  # a log ends: phones stand beside its places
            aside = _ASIDE * known.propagation.decorrelation_m * random.standard_normal((count, 2))
            places = places[random.integers(0, len(places), count)] + aside
        drawn = replace(deployment, radio=_Draw(known, count, random))
        return replace(self.world, deployment=drawn).survey_at(places, random)

    def first(self) -> Survey:
        """Enough of them to see what phones are like."""
        return self.lot(0)

    def all(self) -> Survey:
        """Every one."""
        lots = [self.lot(number) for number in range(-(-self.count // self.per_lot))]
        return Survey(*(np.concatenate([getattr(lot, name) for lot in lots]) for name in vars(lots[0])))
