"""A CUDA device that is not there: programs that ask for one run to their end on the host, and what would have waited is reported."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hostlint.runtime_checks.flush_events import flushing
from hostlint.runtime_checks.simulated.amp import autocast_on_the_host
from hostlint.runtime_checks.simulated.backward import gradients_have_places
from hostlint.runtime_checks.simulated.blind_spots import SimulatedDeviceWarning
from hostlint.runtime_checks.simulated.compiled import compiled_code_runs_eagerly
from hostlint.runtime_checks.simulated.devices import default_device_kept
from hostlint.runtime_checks.simulated.driver import cuda_is_there
from hostlint.runtime_checks.simulated.handlers import plans
from hostlint.runtime_checks.simulated.mode import in_this_thread
from hostlint.runtime_checks.simulated.modules import modules_are_judged
from hostlint.runtime_checks.simulated.nested import nested_tensors_have_places
from hostlint.runtime_checks.simulated.places import storages_have_places
from hostlint.runtime_checks.simulated.saved import files_have_places
from hostlint.runtime_checks.simulated.scripted import scripted_results_have_places
from hostlint.runtime_checks.threads import carried_into_threads

__all__ = ["SimulatedDeviceWarning", "simulate_cuda"]


@contextmanager
def simulate_cuda() -> Iterator[None]:
    """While the body runs there is one CUDA device, `cuda:0`, whose numbers are kept and computed on the host.

    What is made there, moved there or computed from it lives there, until it is moved back. Values are those of the same program with
    "cuda" replaced by "cpu", bit for bit, with one random generator for both places and autocast as on the host. Host tensors beside
    device tensors raise RuntimeError as on CUDA.
    Waits, uploads and sizes that depend on data become events for who listens (`record_host_events`), by hostlint's table of torch, one for
    each call and place; `blocked_s` is None, since nobody waited.

    Calls nest, and threads that the body starts take part. Code of torch.compile runs uncompiled. There are no CUDA graphs, no second
    device, no memory figures.
    It cannot see: memory that other libraries reach (dlpack, `__cuda_array_interface__`), scripted and traced code, extensions, triton
    kernels, processes started inside, threads that were running before. Where it notices, it warns (SimulatedDeviceWarning).
    """
    chosen = plans()
    with ExitStack() as stack:
        stack.enter_context(default_device_kept())
        stack.enter_context(storages_have_places())
        stack.enter_context(cuda_is_there())
        stack.enter_context(autocast_on_the_host())
        stack.enter_context(gradients_have_places())
        stack.enter_context(files_have_places())
        stack.enter_context(modules_are_judged())
        stack.enter_context(scripted_results_have_places())
        stack.enter_context(nested_tensors_have_places())
        stack.enter_context(compiled_code_runs_eagerly())
        stack.enter_context(flushing())
        stack.enter_context(carried_into_threads(lambda: in_this_thread(chosen)))
        stack.enter_context(in_this_thread(chosen))
        yield
