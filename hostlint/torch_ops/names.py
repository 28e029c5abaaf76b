"""Names: the spellings that mean the same function, and the methods that give a tensor away."""
from __future__ import annotations

_PREFIXES = (
    ("torch.functional.F.", "torch.nn.functional."),
    ("torch.functional.", "torch."),
    ("torch.autograd.Variable.", "torch.Tensor."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch.nn.modules.module.", "torch.nn."),
    ("numpy.core.", "numpy."),
)
_NAMES = {
    "torch.cuda.streams.Stream": "torch.cuda.Stream",
    "torch.cuda.streams.Event": "torch.cuda.Event",
}


def canonical(dotted: str) -> str:
    name = _NAMES.get(dotted, dotted)
    for prefix, instead in _PREFIXES:
        if name.startswith(prefix):
            return instead + name[len(prefix):]
    return name


# Asked of a receiver of unknown type. Not here: what NumPy arrays, pandas objects, modules, strings or containers have as well
# (sum, argmax, item, to, cuda, cpu, float, view, add, gather).
TENSOR_METHODS = frozenset(
    """
    addbmm addcdiv addcmul addmm addmv addr addressof allclose amax amin argwhere baddbmm bernoulli bfloat16_ bincount bitwise_and bitwise_not
    bitwise_or bitwise_xor bmm broadcast_to chunk clamp clamp_max clamp_min clone_ contiguous count_nonzero cummax cummin data_ptr detach
    diag_embed element_size erf expand_as expm1 fliplr flipud floor_divide frac gt_ index_add index_copy index_fill index_put index_select
    is_contiguous is_floating_point is_nonzero is_pinned isfinite isinf isnan kthvalue lerp log1p log_softmax logical_and logical_not
    logical_or logical_xor logsumexp masked_fill masked_scatter masked_select matrix_exp movedim msort multinomial nan_to_num nanmean nansum
    narrow new_empty new_full new_ones new_tensor new_zeros nonzero_static numel permute pin_memory record_stream register_hook
    reciprocal repeat_interleave requires_grad_ reshape_as retain_grad rsqrt scatter_add scatter_reduce sigmoid softmax storage_offset
    take_along_dim tensor_split tile to_dense to_sparse topk tril triu type_as unbind unflatten unique_consecutive unsqueeze view_as
    """.split()
)
