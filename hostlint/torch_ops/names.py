"""Names: the spellings that mean the same function, and the methods that give a tensor away."""
from __future__ import annotations

_PREFIXES = (
    ("torch.functional.F.", "torch.nn.functional."),
    ("torch.functional.", "torch."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
    ("torch.cuda.streams.", "torch.cuda."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch_npu.npu.", "torch.npu."),
    ("einops.einops.", "einops."),
)
_CLASS_PACKAGES = ("torch.nn.", "torch.distributions.", "torch.optim.")


def canonical(dotted: str) -> str:
    """`dotted` under the name that the table knows: classes are also found through the module that defines them."""
    for prefix, instead in _PREFIXES:
        if dotted.startswith(prefix):
            return instead + dotted[len(prefix):]
    for package in _CLASS_PACKAGES:
        last = dotted.rpartition(".")[2]
        if dotted.startswith(package) and last[:1].isupper() and last != "AveragedModel":
            return package + last
    return dotted


# Asked of a receiver of unknown type, these say that it is a tensor. Not here: what NumPy arrays, data frames, modules, strings, sets or
# process groups have as well (sum, argmax, item, to, cuda, cpu, float, view, add, gather).
TENSOR_METHODS = frozenset((
    "addcdiv", "addcmul", "addmm", "addmv", "allclose", "amax", "amin", "argwhere", "baddbmm", "bernoulli", "bincount", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "chunk", "clamp", "clamp_max", "clamp_min", "contiguous", "count_nonzero",
    "cummax", "cummin", "data_ptr", "detach", "diag_embed", "element_size", "expand_as", "expm1", "fliplr", "flipud", "floor_divide",
    "index_add", "index_copy", "index_fill", "index_put", "index_select", "is_contiguous", "is_floating_point", "is_nonzero", "is_pinned",
    "isfinite", "isinf", "isnan", "kthvalue", "lerp", "log1p", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logsumexp", "masked_fill", "masked_scatter", "masked_select", "matrix_exp", "movedim", "msort", "multinomial", "nan_to_num",
    "nanmean", "nansum", "narrow", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "nonzero_static", "numel", "permute",
    "pin_memory", "record_stream", "repeat_interleave", "reshape_as", "retain_grad", "rsqrt", "scatter_add", "scatter_reduce", "sigmoid",
    "softmax", "storage_offset", "take_along_dim", "tensor_split", "to_dense", "to_sparse", "topk", "tril", "triu", "type_as", "unbind",
    "unflatten", "unique_consecutive", "unsqueeze", "view_as",
))
# In-place methods end in an underscore; these belong to modules and optimizers as well.
SHARED_IN_PLACE = frozenset(("requires_grad_", "share_memory_", "unscale_"))
