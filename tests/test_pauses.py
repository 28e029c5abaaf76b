"""Flushes and collections: found on a step's path, silent where memory is given back on purpose."""
from __future__ import annotations

from textwrap import dedent

import pytest

from hostlint import registry
from hostlint.scan import scan_text
from hostlint.selection import Layer, enabled

HEAD = "import gc, torch\n"


def codes(body: str, family: str = "HL4") -> dict[int, str]:
    """The family's findings by line, line 1 being the first after the imports."""
    findings, errors = scan_text(HEAD + dedent(body).lstrip("\n"), "program.py")
    assert not errors
    return {finding.span.line - 1: finding.code for finding in findings if finding.code.startswith(family)}


def marked(body: str) -> dict[int, str]:
    lines = dedent(body).lstrip("\n").splitlines()
    return {number: line.partition("# ")[2] for number, line in enumerate(lines, 1) if "# HL" in line}


PROGRAMS = {
    "a function that releases": """
        class Manager:
            def step(self, x):
                self.empty_after_release()
                self.empty_now()
            def empty_after_release(self):
                torch.cuda.empty_cache()
            def empty_now(self):
                torch.cuda.empty_cache()  # HL401
        """,
    "spellings": """
        from accelerate.utils.memory import clear_device_cache
        def run(model, x, steps: int, platform):
            for i in range(steps):
                x = model(x)
                torch.cuda.empty_cache()  # HL401
                torch.get_device_module("cuda").empty_cache()  # HL401
                platform.empty_cache()  # HL401
                get_accelerator().empty_cache()  # HL401
                clear_device_cache()  # HL401
                gc.collect()  # HL403
                gc.collect(2)  # HL403
                gc.collect(1)
                model.collect()
                model.blocks.empty_cache()
    """,
    "other backends": """
        def run(model, x, steps: int, device):
            for i in range(steps):
                x = model(x)
                torch.mps.empty_cache()  # HL401
        def every(model, x, steps: int, device):
            for i in range(steps):
                x = model(x)
                if device.type == "xpu":
                    torch.xpu.empty_cache()
                elif device.type == "cuda":
                    torch.cuda.empty_cache()  # HL401
        def new(model, x, steps: int, device):
            for i in range(steps):
                x = model(x)
                torch.accelerator.empty_cache()  # HL401
                torch.accelerator.empty_cache()  # HL401
    """,
    "guards": """
        def run(model, x, steps: int, verbose: bool):
            for i in range(steps):
                x = model(x)
                if i % 10 == 0:
                    gc.collect()
                if verbose:
                    torch.cuda.empty_cache()
                if i == 0:
                    torch.cuda.empty_cache()
                try:
                    x = model(x)
                except RuntimeError:
                    torch.cuda.empty_cache()
                    gc.collect()
    """,
    "release by name": """
        class BlockOffloader:
            def pre_step(self):
                torch.cuda.empty_cache()
        class Part:
            def offload_model(self):
                torch.cuda.empty_cache()
            def sleep(self):
                gc.collect()
            def __del__(self):
                torch.cuda.empty_cache()
            def forward(self, x):
                torch.cuda.empty_cache()  # HL401
                return x
        def run(model, stage, x, steps: int):
            s = Part()
            for i in range(steps):
                x = model(s.forward(x))
                s.offload_model()
                s.sleep()
                BlockOffloader().pre_step()
    """,
    "through an offloading helper": """
        def clear():
            torch.cuda.empty_cache()
        def unload_block(block):
            block.to("cpu")
            clear()
        def run(model, x, blocks):
            for block in blocks:
                x = block(x)
                unload_block(block)
    """,
    "asked for": """
        def clear():
            torch.cuda.empty_cache()
        def run(model, engine, args, x, steps: int, generation: int):
            for i in range(steps):
                x = model(x)
                gc.collect(generation)
                if args.empty_unused_memory_level >= 1:
                    torch.cuda.empty_cache()
                clear()
                engine.wake_up()
        def other(model, args, x, steps: int):
            for i in range(steps):
                x = model(x)
                if args.level >= 1:
                    torch.cuda.empty_cache()  # HL401
    """,
    "a model is gone": """
        def run(models, x, steps: int):
            for i in range(steps):
                model = models[i]
                x = model(x)
                model.to("cpu")
                torch.cuda.empty_cache()
        def turn(models, x, steps: int):
            for i in range(steps):
                model = models[i]
                x = model(x)
                del model
                gc.collect()
        def wakes(model, engine, x, steps: int):
            for i in range(steps):
                torch.cuda.empty_cache()
                engine.wake_up(tags=["weights"])
                x = model(x)
        def keeps(model, x, steps: int):
            for i in range(steps):
                y = model(x)
                del y
                torch.cuda.empty_cache()  # HL401
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    assert codes(PROGRAMS[name]) == marked(PROGRAMS[name])


def test_a_function_of_the_project_is_looked_into() -> None:
    body = """
        def empty_cache():
            torch.cuda.empty_cache()  # HL401
        def run(model, x, steps: int):
            for i in range(steps):
                x = model(x)
                empty_cache()
    """
    assert codes(body) == marked(body)


def test_a_method_behind_an_object_nobody_can_follow_is_told_at_its_calls() -> None:
    body = """
        class Cuda:
            def empty_cache(self):
                {flush}
        class Cpu:
            def empty_cache(self):
                return None
        def run(model, accelerator, x, steps: int):
            for i in range(steps):
                x = model(x)
                {call}
    """
    told = body.replace("{flush}", "torch.cuda.empty_cache()").replace("{call}", "accelerator.empty_cache()  # HL401")
    assert codes(told) == marked(told)
    told = body.replace("{flush}", "torch.cuda.empty_cache()  # HL401").replace("{call}", "Cuda().empty_cache()")
    assert codes(told) == marked(told)


OBSERVERS = {
    "defaults through calls": """
        class Platform:
            def get_available_memory(self, device=0, empty_cache: bool = True):
                if empty_cache:
                    torch.cuda.empty_cache()  # HL402
                return torch.cuda.mem_get_info(device)
        class Quiet:
            def get_available_memory(self, device=0, empty_cache: bool = False):
                if empty_cache:
                    torch.cuda.empty_cache()
                return torch.cuda.mem_get_info(device)
        def memory(flush: bool = True):
            return Platform().get_available_memory(empty_cache=flush)
        def run(model, x, steps: int):
            for i in range(steps):
                x = model(x)
                memory()
                Quiet().get_available_memory(0)
    """,
    "switched off by every call": """
        def available_memory(empty_cache: bool = True):
            if empty_cache:
                torch.cuda.empty_cache()
            return torch.cuda.mem_get_info()
        def run(model, x, steps: int):
            for i in range(steps):
                x = model(x)
                available_memory(empty_cache=False)
    """,
    "a helper that others use too": """
        def clean():
            gc.collect()  # HL403
        def log_step(i):
            clean()
        def run(model, x, steps: int):
            for i in range(steps):
                x = model(x)
                log_step(i)
                clean()
    """,
    "a collection many calls away": """
        class StepTimer:
            def start(self):
                first()
        def first():
            second()
        def second():
            gc.collect()  # HL402
        def run(model, x, steps: int):
            timer = StepTimer()
            for i in range(steps):
                timer.start()
                x = model(x)
    """,
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_observer(name: str) -> None:
    assert codes(OBSERVERS[name]) == marked(OBSERVERS[name])


OFF = {
    "for ever": """
        def main(model, x):
            gc.disable()  # HL404
            model(x)
    """,
    "handed to somebody who calls it": """
        import atexit
        def main(model, x):
            gc.disable()
            atexit.register(gc.enable)
            model(x)
    """,
    "another module's collector": """
        import gc as collector
        def main(model, x):
            collector.disable()  # HL404
            model.disable()
            model.collect()
            torch.backends.cudnn.enable()
    """,
    "paced elsewhere": """
        from gc import collect as sweep
        class Pace:
            def __init__(self):
                gc.disable()
        def tick(step):
            if step % 100 == 0:
                sweep(1)
    """,
}


@pytest.mark.parametrize("name", OFF)
def test_collector_off(name: str) -> None:
    assert codes(OFF[name]) == marked(OFF[name])


LOGGED = ["settle()", 'f"free {settle()}"', '"free %.2f", settle() / 2**30', '"free {}".format(settle())', '"free %s" % settle()']


@pytest.mark.parametrize("arguments", LOGGED)
def test_a_log_line_works_its_arguments_out_even_where_its_level_is_off(arguments: str) -> None:
    body = """
        import logging
        log = logging.getLogger(__name__)
        def settle():
            torch.cuda.empty_cache()  # HL402
            return torch.cuda.mem_get_info()[0]
        def run(model, x, steps: int):
            for i in range(steps):
                x = model(x)
                log.debug({arguments})
    """.replace("{arguments}", arguments)
    assert codes(body) == marked(body)
    elsewhere = body.replace("log.debug(", "x = x.add(").replace("HL402", "HL401")
    assert codes(elsewhere) == marked(elsewhere)


SERVING = """
        class Worker:
            def answer(self, request):
                request.reply(self.model(request.ids))
            def serve(self):
                while {test}:
                    request = self.inbox.{receive}
                    {work}
"""


def unguarded(test: str = "True", receive: str = "get()", work: str = "self.answer(request)", more: str = "") -> bool:
    body = dedent(SERVING.replace("{test}", test).replace("{receive}", receive).replace("{work}", work)).lstrip("\n")
    return "HL405" in codes(dedent(more) + body).values()


def test_a_worker_whose_requests_a_collection_may_interrupt() -> None:
    assert unguarded()
    assert unguarded("self.running", "recv_pyobj()")
    assert unguarded(work="self.model(request.ids)")


@pytest.mark.parametrize(
    "more",
    [
        "def start():\n    gc.freeze()\n",
        "def start():\n    gc.collect()\n",
        "import atexit\n\ndef start():\n    atexit.register(gc.enable)\n",
        "from hostlint.runtime_checks import request_gc\n\n@request_gc.defer()\ndef start():\n    pass\n",
    ],
)
def test_a_project_that_says_when_to_collect_is_silent(more: str) -> None:
    assert not unguarded(more=more)
    assert unguarded(more="def start():\n    gc.get_stats()\n")


def test_loops_that_serve_no_requests_are_silent() -> None:
    assert not unguarded(work="print(request)")
    assert not unguarded(receive="copy()")
    assert not unguarded(work="self.model(request.ids).mean().backward()")


def test_the_note_on_collections_is_off_unless_it_is_selected() -> None:
    everything = registry.expand("ALL")
    assert everything - enabled([], registry.expand, registry.off()) == {"HL312", "HL405"}
    assert "HL405" in enabled([Layer(extend_select=["HL405"])], registry.expand, registry.off())
    assert enabled([Layer(select=["HL405"])], registry.expand, registry.off()) == {"HL405"}
