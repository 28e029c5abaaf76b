"""Functions and classes that are filed in a registry run where something is taken out of that registry and called."""
from __future__ import annotations

import pytest
from heat_probes import differences

FILED = """
{register}

@{name}("plain")
def plain(x):
    probe()  # call
    return helper(x)

def helper(x):
    probe()  # call
    return x

def train(model, optimizer, loader, mode):
    for batch in loader:
        loss = {looked_up}(model(batch))
        loss.backward()
        optimizer.step()
"""
DECORATORS = {
    "store": """
TABLE = {}
def register(name):
    def wrapped(fn):
        TABLE[name] = fn
        return fn
    return wrapped
""",
    "annotated": """
from typing import Callable
TABLE: dict[str, Callable] = {}
def register(name: str) -> Callable:
    def wrapped(fn: Callable) -> Callable:
        if name in TABLE:
            raise KeyError(name)
        TABLE[name] = fn
        return fn
    return wrapped
""",
    "setdefault": """
TABLE = {}
def register(name):
    def wrapped(fn):
        return TABLE.setdefault(name, fn)
    return wrapped
""",
    "update": """
TABLE = {}
def register(name):
    def wrapped(fn):
        TABLE.update({name: fn})
        return fn
    return wrapped
""",
    "lambda": """
TABLE = {}
def put(name, fn):
    TABLE[name] = fn
    return fn
def register(name):
    return lambda fn: put(name, fn)
""",
    "two hops": """
TABLE = {}
def keep(fn, name):
    TABLE[name] = fn
def register(name):
    def wrapped(fn):
        keep(fn=fn, name=name)
        return fn
    return wrapped
""",
}


@pytest.mark.parametrize("register", DECORATORS.values(), ids=DECORATORS)
def test_a_decorator_files_functions_in_a_table(register: str) -> None:
    assert not differences(main=FILED.format(register=register, name="register", looked_up="TABLE[mode]"))


@pytest.mark.parametrize("looked_up", ["TABLE.get(mode)", "get_fn(mode)", "find(mode)", "Getter().get(mode)"])
def test_what_a_getter_takes_out(looked_up: str) -> None:
    getters = """
def get_fn(name):
    if name not in TABLE:
        raise ValueError(name)
    return TABLE[name]

def find(name):
    fn = TABLE.get(name, None)
    if fn is None:
        fn = TABLE["plain"]
    return fn

class Getter:
    def get(self, name):
        return TABLE[name]
"""
    register = DECORATORS["store"] + getters
    assert not differences(main=FILED.format(register=register, name="register", looked_up=looked_up))


REGISTRY = """
class Registry:
    def __init__(self, name):
        self.name = name
        self._things = {}

    def register(self, name=None):
        def wrapped(thing):
            self._add(thing, name)
            return thing
        return wrapped

    def _add(self, thing, name):
        self._things[name or thing.__name__] = thing

    def get(self, key):
        found = self._things.get(key)
        return found

    def __getitem__(self, key):
        return self._things[key]

    def build(self, cfg):
        made = self.get(cfg.pop("type"))
        return made(**cfg)
"""


@pytest.mark.parametrize("taken", ["LOSSES.get(mode)", "LOSSES[mode]"])
def test_a_registry_holds_its_own_functions_and_no_others(taken: str) -> None:
    assert not differences(
        registry=REGISTRY,
        tables="from registry import Registry\nLOSSES = Registry('losses')\nREADERS = Registry('readers')\n",
        losses="""
        from tables import LOSSES

        @LOSSES.register("plain")
        def plain(x):
            probe()  # call
            return x

        def other(x):
            probe()  # call

        LOSSES.register("other")(other)
        """,
        readers="""
        from tables import READERS

        @READERS.register("files")
        def files(x):
            probe()  # request
        """,
        main=f"""
        from tables import LOSSES

        def train(model, optimizer, loader, mode):
            for batch in loader:
                loss = {taken}(model(batch))
                loss.backward()
                optimizer.step()
        """,
    )


def test_objects_that_a_registry_builds() -> None:
    assert not differences(
        registry=REGISTRY,
        main="""
        from registry import Registry
        METERS = Registry("meters")
        READERS = Registry("readers")

        @METERS.register()
        class Plain:
            def note(self, x):
                probe()  # call

            def sum_up(self):
                probe()  # request

        @READERS.register()
        class Files:
            def note(self, x):
                probe()  # request

        class Trainer:
            def __init__(self, cfg):
                self.meter = METERS.build(cfg)

            def run(self, model, optimizer, loader):
                for batch in loader:
                    loss = model(batch)
                    self.meter.note(loss)
                    optimizer.step()
        """,
    )


def test_a_table_of_the_class_itself() -> None:
    assert not differences(
        main="""
        class Engines:
            _table = {}

            @classmethod
            def register(cls, kind, backend="a"):
                def wrapped(engine):
                    cls._table[kind][backend] = engine
                    return engine
                return wrapped

            @classmethod
            def find(cls, kind, backend):
                return cls._table[kind][backend]

            @classmethod
            def new(cls, kind, backend, *args):
                engine = cls.find(kind, backend)
                return engine(*args)

        @Engines.register("lm")
        class Engine:
            def update(self, batch):
                probe()  # call

        class Worker:
            def __init__(self, kind):
                self.engine = Engines.new(kind, "a")

            def fit(self, model, optimizer, loader):
                for batch in loader:
                    model(batch)
                    self.engine.update(batch)
                    optimizer.step()
        """
    )


def test_functions_that_are_stored_where_they_are_named() -> None:
    assert not differences(
        main="""
        TABLE = {}

        def first(x):
            probe()  # call

        def second(x):
            probe()  # call

        def third(x):
            probe()  # call

        def unused(x):
            probe()  # request

        def put(name, fn):
            TABLE[name] = fn

        TABLE["first"] = first
        TABLE.update(second=second)
        put("third", third)

        def train(model, optimizer, loader, mode):
            for batch in loader:
                TABLE[mode](model(batch))
                optimizer.step()
        """
    )


def test_local_tables_and_tables_of_an_object() -> None:
    assert not differences(
        main="""
        def plain(x):
            probe()  # call

        class Trainer:
            def __init__(self):
                self.steps = {}
                self.steps["mine"] = self.mine
                self.ends = {}
                self.ends["mine"] = self.end

            def mine(self, x):
                probe()  # call

            def end(self, x):
                probe()  # request

            def run(self, model, optimizer, loader, mode):
                table = {}
                table["plain"] = plain
                for batch in loader:
                    loss = model(batch)
                    table[mode](loss)
                    self.steps[mode](loss)
                    optimizer.step()
                self.ends[mode](loss)
        """
    )


def test_what_runs_once_stays_as_it_is() -> None:
    assert not differences(
        main=DECORATORS["store"] + """
LOADERS = {}
def register_loader(name):
    def wrapped(fn):
        LOADERS[name] = fn
        return fn
    return wrapped

@register_loader("files")
def files(path):
    probe()  # request

@register("plain")
def plain(x):
    probe()  # call

def run(model, optimizer, mode, path):
    loader = LOADERS[mode](path)
    for batch in loader:
        TABLE[mode](model(batch))
        optimizer.step()
"""
    )
