"""Cell-free massive MIMO: which access points should serve a phone, from three measurements instead of all.

>>> from fewer import cellfree
>>> world = cellfree.World.make(cellfree.Settings(access_points=40, side_m=630.0, train_phones=2000))
>>> cellfree.Nearest(3).fit(world).select(0, [-90.0, -95.0, -99.0]).access_points(0).tolist()
[0, 28, 16, 27]
"""

from typing import TYPE_CHECKING

from fewer.core.lazy import lazily

if TYPE_CHECKING:
    from fewer.systems.cellfree.picture import draw as draw
    from fewer.systems.cellfree.task.selectors.ceiling import Ceiling as Ceiling
    from fewer.systems.cellfree.task.selectors.ceiling import closeness as closeness
    from fewer.systems.cellfree.task.selectors.kriging import Kriging as Kriging
    from fewer.systems.cellfree.task.selectors.selector import Nearest as Nearest
    from fewer.systems.cellfree.task.settings import Settings as Settings
    from fewer.systems.cellfree.task.survey import World as World

__all__ = ["Ceiling", "Kriging", "Nearest", "Settings", "World", "closeness", "draw"]

_TASK = f"{__name__}.task"

__getattr__, __dir__ = lazily(
    __name__,
    {
        f"{__name__}.picture": ("draw",),
        f"{_TASK}.selectors.ceiling": ("Ceiling", "closeness"),
        f"{_TASK}.selectors.kriging": ("Kriging",),
        f"{_TASK}.selectors.selector": ("Nearest",),
        f"{_TASK}.settings": ("Settings",),
        f"{_TASK}.survey": ("World",),
    },
)
