"""What tests say about how often code runs: every kind of guard, negated, in `else`, before an early return, in a short circuit."""
from __future__ import annotations

import re
from textwrap import dedent

import pytest

from hostlint.facts.lower import lower_file
from hostlint.facts.schema import RegionKind

MARK = re.compile(r"work\(.*#\s*(.*)$")


def guards(text: str) -> dict[int, str]:
    """The guards around each line that calls `work`, outermost first; loops are left out."""
    found: dict[int, str] = {}
    for function in lower_file(text, "main.py", "main").outline.functions:
        for call in function.calls:
            if call.chain.rpartition(".")[2] == "work":
                kinds: list[str] = []
                region = call.region
                while region:
                    kind = RegionKind(function.regions[region].kind)
                    kinds.insert(0, kind.name.lower())
                    region = function.regions[region].parent
                found[call.line] = " ".join(kind for kind in kinds if kind != "loop") or "-"
    return found


def marked(text: str) -> dict[int, str]:
    return {number: mark[1] for number, line in enumerate(text.splitlines(), 1) if (mark := MARK.search(line))}


PROGRAMS = {
    # every n-th step
    "modulo": """
        def f(step, n):
            if step % 10 == 0:
                work()  # every_n
            work()  # -
            if step % n == 0:
                work()  # every_n
            else:
                work()  # -
            if (step + 1) % n == n - 1:
                work()  # every_n
    """,
    "modulo that fails": """
        def f(step, n):
            if step % n != 0:
                work()  # -
            else:
                work()  # every_n
            if step % n:
                work()  # -
            else:
                work()  # every_n
            if not step % n:
                work()  # every_n
            if not step % n == 0:
                work()  # -
            else:
                work()  # every_n
            if step % n > 0:
                work()  # -
            else:
                work()  # every_n
            if 0 == step % n:
                work()  # every_n
    """,
    "modulo of a small number": """
        def f(step, accumulation_steps):
            if step % 2 == 0:
                work()  # -
            if step % 8 == 0:
                work()  # every_n
            if step % accumulation_steps == 0:
                work()  # -
    """,
    "modulo in a condition of several": """
        def f(step, n, a):
            if a and step % n == 0:
                work()  # every_n
            else:
                work()  # -
            if step % n == 0 or a:
                work()  # every_n
            if a and not step % n:
                work()  # every_n
            if a and step % n != 0:
                work()  # -
            else:
                work()  # -
            if a or step % n != 0:
                work()  # -
            else:
                work()  # every_n
    """,
    "modulo and early ends": """
        def f(step, n):
            if step % n != 0:
                return
            work()  # every_n
        def g(step, n):
            if step % n == 0:
                return
            work()  # -
        def h(n):
            for step in range(n):
                work()  # -
                if step % 50:
                    continue
                work()  # every_n
            work()  # -
        def i(step, n):
            if step % n == 0:
                work()  # every_n
            else:
                return
            work()  # every_n
    """,
    "logging": """
        def f(self, step):
            if self.should_log(step):
                work()  # every_n
            if self.is_log_step:
                work()  # every_n
            if not self.should_log(step):
                work()  # -
                return
            work()  # every_n
    """,
    "what is marked when it was done": """
        def f(self, out, ref, key):
            if self.is_verified(key):
                return out
            work()  # memo
            self.mark_verified(key)
        def g(self, out, key):
            if self.is_ready(key):
                return out
            work()  # -
            self.mark_verified(key)
        def h(self, out, key):
            if self.is_verified(key):
                work()  # -
            self.mark_verified(key)
    """,
    "what is set up when it is needed": """
        def f(self, x):
            if self.state is None or self.state.need_reinit(x):
                self._graph_reinitialize(x)  # memo
            if self.graph is None:
                self.capture(x)  # memo
            if self.graph is None:
                self.decode(x)  # -
            if self.wide:
                self.build(x)  # -
        def g(self, parallel_ready):
            if parallel_ready:
                return
            work()  # -
        def h(self):
            if self._ready:
                return
            work()  # once
    """,
    "an attribute that counts": """
        def f(self, boxes):
            self.n = boxes.shape[1]
            if self.n == 0:
                return boxes
            work()  # -
            n = self.n
            self.n = n
        def g(self, boxes):
            if self.n == boxes.n:
                return self.table
            work()  # memo
            self.n = boxes.n
        def h(self, boxes):
            if self.n == 0:
                self.n = boxes.n
                work()  # memo
            work()  # -
        def l(self, boxes):
            if self.n == 1:
                return self.table
            work()  # memo
            self.n = 1
        def i(self, boxes):
            if self.n == boxes.n:
                return boxes
            work()  # -
            self.inner(boxes)
        def k(self, x):
            if self.merged:
                result = self.base(x)
            else:
                result = self.get_merged_weights(x)  # -
                work()  # -
        def j(self, boxes):
            if self.table == boxes.n:
                return boxes
            work()  # memo
            self.build_tables(boxes)
    """,
    "a test that a name holds": """
        def f(self, step, total_steps, test_freq, cfg, last, c):
            is_valid_step = step % test_freq == 0
            should = cfg.freq > 0 and step % cfg.freq == 0
            due = step % cfg.freq == 0 if cfg.freq else False
            is_end = step >= total_steps
            if is_valid_step:
                work()  # every_n
            else:
                work()  # -
            if c or (test_freq > 0 and is_valid_step):
                work()  # every_n
            if is_end and c or (test_freq > 0 and is_valid_step):
                work()  # every_n
            if should:
                work()  # every_n
            if due:
                work()  # every_n
            if is_end:
                work()  # once
            if not is_valid_step:
                return
            work()  # every_n
        def g(self, step, n):
            skip = step % n != 0
            if skip:
                work()  # -
            else:
                work()  # every_n
            if not skip and self.on:
                work()  # every_n
            keep = not skip
            both = keep and self.on
            if both:
                work()  # every_n
            if (due := step % n == 0) or self.on:
                work()  # every_n
            x = work() if keep else None  # every_n
            y = keep and work()  # every_n
            missing = self.table is None
            if missing:
                self.table = work()  # memo
    """,
    "models that take turns": """
        def f(self, step, n, gen_update_ratio, generator_update_interval, n_critic, log_steps):
            train_generator = step % self.dfake_gen_update_ratio == 0
            if train_generator:
                work()  # -
            if step % generator_update_interval == 0:
                work()  # -
            if step % n_critic == 0:
                work()  # -
            if step % self.d_steps == 0 and self.on:
                work()  # -
            if step % n == 0:
                loss = work()  # -
                loss.backward()
            if step % n:
                work()  # -
            else:
                work()  # every_n
            if step % self.generator_log_steps == 0:
                work()  # every_n
            if step % self.actor_save_freq == 0:
                work()  # every_n
            if step % self.steps_per_generation == 0:
                work()  # round
    """,
    "a test that a name holds no more": """
        def f(self, step, n, accumulation_steps, other):
            due = step % n == 0
            due = other > 1
            if due:
                work()  # -
            again = step % n == 0
            if other:
                again = other > 1
            if again:
                work()  # -
            updates = (step + 1) % accumulation_steps == 0
            if updates:
                work()  # -
            counts = step % n
            late = step >= n
            if late:
                work()  # -
    """,
    "logging that is off": """
        def f(self, a):
            if a and not self.should_log(a):
                work()  # -
    """,
    # debug switches
    "debug": """
        def f(self, a):
            if self.debug:
                work()  # debug
            if self.config.calibrate:
                work()  # debug
            if not calibrating:
                pass
            else:
                work()  # debug
            if self.config.verbose > 1:
                work()  # debug
            if logger.isEnabledFor(10):
                work()  # debug
            if os.environ.get("MY_DEBUG"):
                work()  # debug
            if a and self.debug:
                work()  # debug
            else:
                work()  # -
            if self.debug or self.verbose:
                work()  # debug
            if a or self.debug:
                work()  # -
            if self.debug is None:
                work()  # -
    """,
    "debug that is off": """
        def f(self, a):
            if not self.debug:
                work()  # -
            else:
                work()  # debug
            if a and not self.debug:
                work()  # -
            if not self.debug:
                return
            work()  # debug
    """,
    "a switch of the environment": """
        CHECK = os.environ.get("CHECK_INPUTS", "0") == "1"
        TRACE = bool(int(os.getenv("TRACE", 0)))
        FAST = os.environ.get("FAST", "1") == "1"
        VERIFY = envs.MY_VERIFY_INPUTS.get()
        FUSED = envs.MY_FUSED_KERNEL.get()
        def g(layer):
            due = VERIFY and layer.index not in layer.seen
            if due:
                work()  # debug
            if FUSED:
                work()  # -
        def f(a):
            if CHECK:
                work()  # debug
            if TRACE and a:
                work()  # debug
            if not CHECK:
                work()  # -
            if FAST:
                work()  # -
    """,
    "a switch of an observer": """
        class Profiler:
            def step(self):
                if self.enabled:
                    work()  # debug
                if not self.enabled:
                    return
                work()  # debug
        class Layer:
            def step(self):
                if self.enabled:
                    work()  # -
    """,
    # what construction makes only where it is asked
    "attributes that are there for another machine or a debugger": """
        class C:
            def __init__(self, device, args, table=None):
                self.device = device
                self.delayed = None
                if device.type == "cuda":
                    self.delayed = Delayed()
                self.spy = Spy(args) if args.debug else None
                self.spare = None if args.debug else Spare()
                self.table = None
                if table is not None:
                    self.table = table
                self.both = None
                if args.debug:
                    self.both = Both()
                else:
                    self.both = Other()
                self.late = None
                if args.debug:
                    self.late = Late()
                self.looped = None
                for one in args:
                    self.looped = one
                self.deep = None
                if args.fast:
                    if args.verbose:
                        self.deep = Deep()

            def refill(self):
                self.late = Late()
                self.spy = None

            def f(self, x, table=None):
                if self.delayed is not None:
                    work()  # -
                else:
                    work()  # export
                if self.delayed is None:
                    work()  # export
                if self.delayed and x:
                    work()  # -
                if self.spy is not None:
                    work()  # debug
                if self.spy:
                    work()  # debug
                if x and self.spy:
                    work()  # debug
                if not self.spy:
                    work()  # -
                if self.spare is not None:
                    work()  # -
                if self.spare is None:
                    work()  # debug
                if self.table is not None:
                    work()  # -
                if self.both is not None:
                    work()  # -
                if self.late is not None:
                    work()  # -
                if self.looped is not None:
                    work()  # -
                if self.deep is not None:
                    work()  # debug
                y = work() if self.spy is None else x  # -
                y = self.spy is not None and work()  # debug
    """,
    # once
    "a count that begins": """
        class C:
            def f(self, scheduler, done, n):
                if scheduler.taken < 1:
                    work()  # once
                if self.taken == 0:
                    work()  # once
                if not self.calls_made:
                    work()  # once
                if self.reset == 0:
                    work()  # -
                if self.held == 0:
                    work()  # -
                if done.late < 2:
                    work()  # -
                if n < 1:
                    work()  # -
                if self.taken > 0:
                    work()  # -
                if self.calls_made:
                    work()  # -
                if scheduler.taken < scheduler.order:
                    scheduler.taken += 1
                self.taken += 1
                self.calls_made += 1
                self.reset += 1
                if self.reset == n:
                    self.reset = 0
                self.held -= 1
                done.late += 1
                n += 1
    """,
    "first and last": """
        def f(step, steps, i, x):
            if step == 0:
                work()  # once
            else:
                work()  # -
            if i == len(x) - 1:
                work()  # once
            if step != 0:
                work()  # -
            else:
                work()  # once
            if i == 0 or i == len(x) - 1:
                work()  # once
            if step < 3:
                work()  # once
            if x == 0:
                work()  # -
            if step == 5:
                work()  # once
            if i == 5:
                work()  # -
    """,
    "first, in a condition of several": """
        def f(step, x):
            if x and step == 0:
                work()  # once
            if x or step == 0:
                work()  # -
            if x and step != 0:
                work()  # -
            else:
                work()  # -
    """,
    "warm-up": """
        def f(self, step):
            if self.is_warmup:
                work()  # once
            if step < self.warmup_steps:
                work()  # once
            if step >= self.warmup_steps:
                work()  # -
            if not self.initialized:
                work()  # once
            if self.initialized:
                work()  # -
            if self.is_first_step:
                work()  # once
    """,
    "first, and early ends": """
        def f(self, step):
            if step > 0:
                work()  # -
            if step != 0:
                return
            work()  # once
    """,
    # evaluation
    "evaluation": """
        def f(self, is_eval, x):
            if self.training:
                work()  # training
            else:
                work()  # evaluation
            if not self.training:
                work()  # evaluation
            if is_eval:
                work()  # evaluation
            if not is_eval:
                work()  # -
            if self.training:
                return
            work()  # evaluation
    """,
    "evaluation, in a condition of several": """
        def f(self, is_eval, x):
            if not self.training and x:
                work()  # evaluation
            if x and is_eval:
                work()  # evaluation
            if x and not is_eval:
                work()  # -
            if x or is_eval:
                work()  # -
            if self.training and x:
                work()  # training
            else:
                work()  # -
            if self.training or x:
                work()  # -
            trains = self.training and x
            if trains:
                work()  # training
            if mode == "train":
                work()  # training
            y = work() if is_training else None  # training
            if mode != "train":
                return
            work()  # training
    """,
    "a check that is called validate is no evaluation": """
        def f(self, x):
            if not self.validate(x):
                return
            work()  # -
    """,
    # export
    "export": """
        def f(x):
            if torch.jit.is_scripting():
                work()  # export
            else:
                work()  # -
            if torch.jit.is_tracing() or torch.jit.is_scripting():
                work()  # export
            if torch.onnx.is_in_onnx_export():
                return x
            work()  # -
    """,
    "no export": """
        def f(x):
            if not torch.jit.is_scripting():
                work()  # -
            if not torch.jit.is_scripting() and not torch.jit.is_tracing():
                work()  # -
            else:
                work()  # export
            if not torch.jit.is_tracing() and x:
                work()  # -
            if x and torch.jit.is_tracing():
                work()  # export
            if x or torch.jit.is_tracing():
                work()  # -
            if not torch.jit.is_tracing():
                return x
            work()  # export
    """,
    # memo
    "an attribute that is filled once": """
        class C:
            def f(self, x):
                if self.table is None:
                    self.table = work()  # memo
                work()  # -
                if self.other is not None:
                    pass
                else:
                    self.other = work()  # memo
                if not hasattr(self, "third"):
                    self.third = work()  # memo
                if self.fourth is None:
                    work()  # -
                if not self.fifth:
                    self.fifth = work()  # memo
    """,
    "a dictionary that is filled once": """
        class C:
            def f(self, key):
                if key not in self.cache:
                    self.cache[key] = work()  # memo
                if key in self.cache:
                    return self.cache[key]
                work()  # memo
        def g(key, cache):
            if key not in cache:
                cache[key] = work()  # memo
            if cache.get(key) is None:
                cache[key] = work()  # memo
            if key not in cache.keys():
                cache.setdefault(key, work())  # memo
    """,
    "a kept value that fits": """
        class C:
            def f(self, n):
                if self.size < n:
                    self.size = work()  # memo
                if self.rows is None or self.rows.shape[0] != n:
                    self.rows = work()  # memo
                if self.rows is not None and self.rows.shape[0] == n:
                    return self.rows
                self.rows = work()  # memo
    """,
    "a part's attribute that is noted": """
        class C:
            def f(self, height, width):
                if self.module.height != height or self.module.width != width:
                    self.module.table = work()  # memo
                    self.module.height = height
                    self.module.width = width
                if not self.part.size == height:
                    self.table = work()  # memo
                    self.part.size = height
                if self.module.depth != width:
                    self.module.table = work()  # -
                if self.module.rows == height:
                    self.module.rows = work()  # -
    """,
    "a buffer that is filled once": """
        class C:
            def f(self, n):
                if self.mask is None:
                    self.register_buffer("mask", work())  # memo
                if self.table is None:
                    self._build_table(work())  # memo
                if self._best_values is None:
                    self._estimate_best_values(work())  # memo
                if self._best_value is None:
                    self.estimate_best_values(work())  # memo
                if self._values is None:
                    self._estimate_bounds(work())  # -
                if n >= len(self.sigmas) - 1:
                    pass
                else:
                    self.sigma_broadcast(work())  # -
    """,
    "a kept value that is returned": """
        class C:
            def f(self):
                if self.table is not None:
                    return self.table
                work()  # memo
            def g(self):
                if self.table is None:
                    return None
                work()  # -
    """,
    "a value that hangs on another object": """
        def f(module, x):
            if getattr(module, "table", None) is None:
                module.register_buffer("table", work())  # memo
            if getattr(module, "other", None) is None:
                module.other = work()  # memo
            if getattr(module, "third", None) is None:
                x.append(work())  # -
    """,
    "an early end with raise is no memo": """
        class C:
            def f(self):
                if self.table is not None:
                    raise ValueError
                work()  # -
    """,
    "a module's own name": """
        _TABLE = None
        def f():
            global _TABLE
            if _TABLE is None:
                _TABLE = work()  # memo
            return _TABLE
    """,
    "a flag that is a buffer": """
        def f(self, x):
            if self.filled:
                return
            work()  # memo
            self.filled.data.copy_(x)
        def g(self, x):
            if not self.ready:
                work()  # memo
                self.ready.fill_(True)
        def h(self, x):
            if self.inited:
                return
            work()  # once
        def i(self, x):
            if not self.open:
                work()  # -
                self.opened.fill_(True)
    """,
    # left out
    "an argument that is left out": """
        def f(x, mask=None, y=None):
            if mask is None:
                mask = work()  # fallback
            if y is not None:
                y = y + 1
            else:
                y = work()  # fallback
    """,
    "an element that is no tensor": """
        def f(batch, x, t):
            scale = batch["scale"]
            if not isinstance(scale, torch.Tensor):
                scale = work()  # -
            times = t
            if not torch.is_tensor(times):
                times = work()  # fallback
            if not isinstance(t, torch.Tensor):
                t = work()  # fallback
        def g(batch, x):
            scale = batch["scale"]
            kept = scale
            if x:
                assert not isinstance(scale, torch.Tensor)
            if not isinstance(scale, torch.Tensor):
                scale = work()  # -
            if not isinstance(scale, torch.Tensor):
                scale = work()  # fallback
    """,
    "a choice by an argument that may be left out": """
        def f(x, mask=None):
            if mask is None:
                work()  # -
            else:
                work()  # option
    """,
    "an option that is off by default": """
        def f(x, mask=None, flag=False, on=True, width=0):
            if flag:
                work()  # option
            else:
                work()  # unset
            if x and not flag:
                work()  # unset
            else:
                work()  # -
            if flag or x:
                work()  # -
            else:
                work()  # unset
            if flag and x:
                work()  # option
            else:
                work()  # -
            if mask is not None and x:
                work()  # option
            if mask or x:
                work()  # -
            if on:
                work()  # -
            if width:
                work()  # -
            if not flag:
                return
            work()  # option
    """,
    "an argument that was filled in": """
        def f(x, mask=None):
            mask = mask or x
            if mask is not None:
                work()  # -
            if mask:
                work()  # -
    """,
    "an option that has a fallback": """
        def f(x, mask=None):
            if mask is not None:
                work()  # option
            else:
                mask = x
                work()  # fallback
    """,
    "a local that is None": """
        def f(x):
            mask = x.mask
            if mask is None:
                work()  # -
    """,
    # except and raise
    "except": """
        def f(x):
            try:
                work()  # -
            except ValueError:
                work()  # except
            else:
                work()  # -
            finally:
                work()  # -
            work()  # -
    """,
    "finally after a return": """
        def f(x):
            try:
                return work()  # -
            finally:
                work()  # -
    """,
    "raise": """
        def f(x):
            if x.bad:
                raise ValueError(work())  # raise raise
            if x.worse:
                text = work()  # raise
                raise ValueError(text)
            assert x.good, work()  # raise
            assert work()  # -
            if x.fine:
                work()  # -
            else:
                raise ValueError
            work()  # -
    """,
    # short circuits
    "operands of and": """
        def f(self, step, x):
            ok = self.debug and work()  # debug
            ok = not self.debug and work()  # -
            if step % 100 == 0 and work():  # every_n
                work()  # every_n
            ok = x and work()  # -
            ok = work() and self.debug  # -
            ok = not self.training and x and work()  # evaluation
            work()  # -
    """,
    "operands of or": """
        def f(self, step, x):
            ok = self.debug or work()  # -
            ok = not self.debug or work()  # debug
            ok = step % 100 or work()  # every_n
            ok = self.training or work()  # evaluation
            ok = x or work()  # -
    """,
    "arms of a conditional expression": """
        def f(self, step, x):
            ok = work() if self.debug else None  # debug
            ok = None if self.debug else work()  # -
            ok = None if step % 100 else work()  # every_n
            ok = work() if x else None  # -
    """,
    # together
    "one in the other": """
        def f(self, step, x):
            for i in x:
                if step % 10 == 0:
                    if self.debug:
                        work()  # every_n debug
                    for j in i:
                        work()  # every_n
                elif self.debug:
                    work()  # debug
                else:
                    work()  # -
                work()  # -
    """,
    "a guard ends with its block": """
        def f(self, step, x):
            for i in x:
                if step % 10:
                    continue
                work()  # every_n
            else:
                work()  # -
            with x:
                if not self.debug:
                    return
                work()  # debug
            work()  # -
    """,
    "nested functions start anew": """
        def f(self, step):
            if self.debug:
                def g():
                    work()  # -
                g()
                h = lambda: work()  # -
    """,
    "no call where nothing runs": """
        def f(x):
            return x
            work()
        def g(x):
            raise ValueError
            work()
        def h(x):
            while True:
                break
                work()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_guards(name: str) -> None:
    text = dedent(PROGRAMS[name])
    assert guards(text) == marked(text)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("step % 10 == 0", "every n-th step"),
        ("self.debug", "behind a debug switch"),
        ("step == 0", "in one iteration only"),
        ("not self.training", "while evaluating"),
        ("torch.jit.is_tracing()", "while exporting"),
    ],
)
def test_a_guard_is_said_in_words(test: str, words: str) -> None:
    outline = lower_file(f"def f(self, step, mask=None):\n    if {test}:\n        work()\n", "main.py", "main").outline
    function = outline.functions[1]
    assert function.regions[function.calls[-1].region].text == words
