"""What can make the host wait or upload: the closed set of fact kinds that the engine proves and the rules word."""
from __future__ import annotations

from enum import Enum


class FactKind(Enum):
    ITEM = "item"  # t.item()
    SCALAR_CAST = "scalar-cast"  # float(t), int(t), complex(t), math.f(t), "%f" % t
    TRUTH_TEST = "truth-test"  # if t, not t, t and u, a < t < b, in, max(t, u), bool(t), is_nonzero
    HOST_COPY = "host-copy"  # t.cpu(), t.to("cpu"), t.numpy(force=True), np.asarray(t)
    TOLIST = "tolist"  # t.tolist()
    FORMAT = "format"  # f"{t}", "{}".format(t), print(t), str(t), repr(t), a log line that is emitted
    INDEX = "index"  # x[t0], x[:t0], range(t), lst[t], x.view(t), torch.zeros(t)
    SCALAR_ARGUMENT = "scalar-argument"  # alpha=t, torch.full(size, t), torch.arange(t), masked_fill(m, t)
    TENSOR_OF_TENSORS = "tensor-of-tensors"  # torch.tensor([t0, t1])
    NONZERO = "nonzero"  # nonzero, argwhere, one-argument where
    MASK_READ = "mask-read"  # x[bool mask], masked_select
    MASK_WRITE = "mask-write"  # x[bool mask] = tensor, x[mask] *= v, index_put_((mask,), v)
    DATA_DEPENDENT_SIZE = "data-dependent-size"  # unique, bincount, one_hot without count, repeat_interleave(tensor)
    CHECKED_LINALG = "checked-linalg"  # linalg.solve, inv, cholesky, eigh, svd ...
    VALIDATED_DISTRIBUTION = "validated-distribution"  # torch.distributions without validate_args=False
    HIDDEN_WAIT = "hidden-wait"  # a library call that reads inside
    EXPLICIT_SYNCHRONIZE = "explicit-synchronize"  # synchronize() of device, stream, event
    EQUALITY = "equality"  # torch.equal, allclose
    UPLOAD_CONSTRUCTOR = "upload-constructor"  # torch.tensor(data, device=cuda)
    HOST_BUILT_MOVE = "host-built-move"  # torch.arange(n).to(device)
    BLOCKING_UPLOAD = "blocking-upload"  # host_tensor.to(device), x.copy_(host_tensor)
    HOST_INDEX = "host-index"  # x[[0, 2]], x[host tensor], x[numpy array]
    ELEMENT_WRITE = "element-write"  # x1d[0] = 1.0, x[index tensor] = 1.0
    HOST_OPERAND = "host-operand"  # torch.where(m, x, torch.tensor(0.0))
    PIN_PER_CALL = "pin-per-call"  # t.pin_memory() on a step's path
    PAGEABLE_NON_BLOCKING = "pageable-non-blocking"  # large pageable tensor moved with non_blocking=True
    FLUSH = "flush"  # empty_cache() of the allocator
    COLLECTION = "collection"  # gc.collect()
    REBUILT_CONSTANT = "rebuilt-constant"  # torch.arange(n) on a step's path, from shapes and attributes of __init__
    UNFINISHED_COPY = "unfinished-copy"  # x.to("cpu", non_blocking=True).item()
    PINNED_REWRITE = "pinned-rewrite"  # a pinned buffer filled anew while its copy may still read it
    GRAPH_KEPT = "graph-kept"  # total += loss, with the loss's graph
    LOW_PRECISION_SUM = "low-precision-sum"  # a running sum in bf16
    DROPPED_MOVE = "dropped-move"  # x.to(device) as a statement
    INVARIANT_WORK = "invariant-work"  # mask.float() in a step loop, with the mask bound before it
    OBSERVER_PAUSE = "observer-pause"  # a getter or log line that flushes the allocator or collects
    COLLECTOR_OFF = "collector-off"  # gc.disable() with nothing in the project that collects
    CAST_PER_BLOCK = "cast-per-block"  # mask.bool() in every block, which all get the same mask
    CONSTANT_PROJECTION = "constant-projection"  # self.to_k(text) in a denoiser, whose text is the same at every step
    IDENTITY_KEY = "identity-key"  # cache[x.data_ptr()], a memo of tensors fed a fresh one at every step
    SAME_PER_BLOCK = "same-per-block"  # torch.cat([cos, sin]) in every block, which all get the same tables
    LAUNCH_LOOP = "launch-loop"  # for i in range(n): mask[i, : i * w] = 0
    ENVIRONMENT_READ = "environment-read"  # os.environ.get(...) in every block
    SIZE_TABLE = "size-table"  # build_mask(batch_size, text_len, image_len, device) at every step
    VALUE_KEY = "value-key"  # table(key), with a key that another function made of t.tolist()
    UNGUARDED_COLLECTIONS = "unguarded-collections"  # while True: run(inbox.get()), and nothing in the project says when to collect
    PINNED_FREED = "pinned-freed"  # cudaHostUnregister(p) after x.copy_(p, non_blocking=True)
    EAGER_LOG = "eager-log"  # log.debug(f"{[name for name in names]}") on a step's path
    HOST_COUNTER = "host-counter"  # self.steps += 1, of a buffer that the host reads back
    SINGLE_ENTRY = "single-entry"  # lru_cache(maxsize=1), asked for two branches in turn
