"""Memory of batches is used again when nobody holds it, and never before."""

from __future__ import annotations

import torch

from fewer.systems.nowcast.task.files import buffer_pool
from fewer.systems.nowcast.task.files.buffer_pool import recycled

SHAPE = (2, 3, 5)


def test_memory_is_used_again_once_its_tensor_is_gone() -> None:
    first = recycled(SHAPE)
    place = first.data_ptr()
    assert recycled(SHAPE).data_ptr() != place  # it is held
    del first
    assert recycled(SHAPE).data_ptr() == place
    assert recycled((2, 3, 7)).shape == (2, 3, 7)


def test_a_view_and_a_graph_hold_the_memory() -> None:
    first = recycled(SHAPE)
    place, part = first.data_ptr(), first[1:]
    weight = torch.ones(SHAPE, requires_grad=True)
    product = (weight * first).sum()  # the graph saves `first`
    del first
    assert recycled(SHAPE).data_ptr() != place
    del part
    assert recycled(SHAPE).data_ptr() != place
    product.backward()
    del product
    assert recycled(SHAPE).data_ptr() == place


def test_a_bounded_number_of_free_buffers_is_kept() -> None:
    held = [recycled((4, 4)) for _ in range(3 * buffer_pool._KEPT)]
    del held
    recycled((9, 9))
    assert len(buffer_pool._FREE) <= buffer_pool._KEPT + 1
