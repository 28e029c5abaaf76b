"""Elements that are gathered by kept positions are those that the mask picks, in order, also after the mask has changed."""
from __future__ import annotations

import pytest
import torch

from hostlint.fix.kept_positions import SELECTOR
from hostlint.runtime_checks.bits import difference


def selector() -> object:
    names: dict[str, object] = {"torch": torch}
    exec("import functools\n" + SELECTOR.format(cache="functools.lru_cache"), names)  # noqa: S102 - the text that a fix adds
    return names["select_masked"]


MASKS = (
    torch.tensor([[True, False, True], [False, False, True]]), torch.zeros(2, 3, dtype=torch.bool), torch.ones(2, 3, dtype=torch.int64),
)  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_the_same_elements(mask: torch.Tensor, dtype: torch.dtype) -> None:
    select = selector()
    assert callable(select)
    values = torch.tensor([float("nan"), -0.0, 1.5, float("inf"), -2.0, 0.0]).repeat(4)
    for table in (values[:6].view(2, 3), values.view(2, 3, 4), values.view(4, 2, 3).permute(1, 2, 0), values[:1].expand(2, 3)):
        cast = table if dtype is torch.float32 else table.nan_to_num().to(dtype)
        assert difference(select(cast, mask), cast[mask.bool()]) == ""
        wide = mask.bool().reshape(2, 3, *[1] * (cast.dim() - 2))
        assert difference(select(cast, mask).reshape(-1), cast.masked_select(wide)) == ""


def test_a_mask_that_was_written_to_is_searched_again() -> None:
    select = selector()
    assert callable(select)
    mask, table = torch.tensor([True, False, True]), torch.arange(6.0, requires_grad=True).view(3, 2)
    assert difference(select(table, mask).detach(), table[mask].detach()) == ""
    mask[1] = True
    after = select(table, mask)
    assert difference(after.detach(), table[mask].detach()) == ""
    after.sum().backward()
    with torch.inference_mode():
        assert difference(select(table.detach(), mask), table.detach()[mask]) == ""
        assert difference(select(torch.ones(3), torch.tensor([False, True, True])), torch.ones(2)) == ""
