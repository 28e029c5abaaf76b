"""Names across files, and what classes inherit, by outlines written by hand."""
from __future__ import annotations

from hostlint.facts.schema import ClassOutline, FileOutline, FunctionOutline, Param, Region, RegionKind
from hostlint.index import ProjectIndex, Symbol, SymbolKind

BODY = (Region(RegionKind.BODY, 0, 1, "", ()),)
Pairs = tuple[tuple[str, str], ...]


def function(
    index: int, qualname: str, *, owner: int = -1, parent: int = 0, imports: Pairs = (), assigns: Pairs = (), params: tuple[Param, ...] = ()
) -> FunctionOutline:
    name = qualname.rpartition(".")[2]
    return FunctionOutline(index, name, qualname, 1, 2, owner, parent, (), params, "", BODY, 0, (), assigns, imports, (), 0)


def klass(
    index: int,
    qualname: str,
    bases: tuple[str, ...] = (),
    methods: tuple[tuple[str, int], ...] = (),
    attributes: tuple[tuple[str, int, int, str], ...] = (),
    annotations: Pairs = (),
) -> ClassOutline:
    return ClassOutline(index, qualname.rpartition(".")[2], qualname, 1, bases, attributes, annotations, methods)


def file(
    module: str,
    *,
    functions: tuple[FunctionOutline, ...] = (),
    classes: tuple[ClassOutline, ...] = (),
    imports: Pairs = (),
    stars: tuple[str, ...] = (),
    names: tuple[tuple[str, int], ...] = (),
    package: bool = False,
) -> FileOutline:
    path = module.replace(".", "/") + ("/__init__.py" if package else ".py")
    return FileOutline(module, path, 10, imports, stars, (function(0, "<module>"), *functions), classes, names)


def external(name: str) -> Symbol:
    return Symbol(SymbolKind.EXTERNAL, name=name)


def test_import_aliases_expand_to_external_names() -> None:
    index = ProjectIndex([file("m", imports=(("F", "torch.nn.functional"), ("torch", "torch"), ("pad", "torch.nn.functional.pad")))])
    assert index.resolve(0, "F.pad") == external("torch.nn.functional.pad")
    assert index.resolve(0, "torch.zeros") == external("torch.zeros")
    assert index.resolve(0, "pad") == external("torch.nn.functional.pad")


def test_builtins_and_unknown_names() -> None:
    index = ProjectIndex([file("m", names=(("limit", 7),))])
    assert index.resolve(0, "float") == external("builtins.float")
    assert index.resolve(0, "nowhere") is None
    assert index.resolve(0, "limit") == Symbol(SymbolKind.GLOBAL, 0, 7, "limit")


def test_module_definition_shadows_a_builtin_and_an_import() -> None:
    index = ProjectIndex([file("m", functions=(function(1, "max"),), imports=(("max", "other.max"),))])
    assert index.resolve(0, "max") == Symbol(SymbolKind.FUNCTION, 0, 1)


def test_function_scope_sees_its_own_imports_and_enclosing_definitions() -> None:
    inner = function(2, "outer.inner", parent=1)
    deep = function(3, "outer.inner.deep", parent=2)
    index = ProjectIndex([file("m", functions=(function(1, "outer", imports=(("np", "numpy"),)), inner, deep))])
    assert index.resolve(0, "np.array", 3) == external("numpy.array")
    assert index.resolve(0, "inner", 3) == Symbol(SymbolKind.FUNCTION, 0, 2)
    assert index.resolve(0, "deep", 1) is None
    assert index.resolve(0, "np", 0) is None


def test_a_local_value_hides_the_module_name() -> None:
    index = ProjectIndex([file("m", functions=(function(1, "helper"), function(2, "f", assigns=(("helper", "?"),))))])
    assert index.resolve(0, "helper", 1) == Symbol(SymbolKind.FUNCTION, 0, 1)
    assert index.resolve(0, "helper", 2) is None


def test_names_are_followed_through_packages_and_stars() -> None:
    index = ProjectIndex([
        file("pkg", imports=(("run", "pkg.api.run"),), package=True),
        file("pkg.api", stars=("pkg.impl",)),
        file("pkg.impl", functions=(function(1, "run"),)),
        file("user", imports=(("pkg", "pkg"), ("go", "pkg.run"))),
    ])
    target = Symbol(SymbolKind.FUNCTION, 2, 1)
    assert index.resolve(3, "pkg.run") == target
    assert index.resolve(3, "go") == target
    assert index.resolve(3, "pkg.api.run") == target
    assert index.resolve(3, "pkg.impl") == Symbol(SymbolKind.MODULE, 2)


def test_a_function_named_like_its_module_wins_where_the_package_exports_it() -> None:
    index = ProjectIndex([
        file("pkg", imports=(("linear", "pkg.linear.linear"),), package=True),
        file("pkg.linear", functions=(function(1, "linear"),)),
        file("user", imports=(("linear", "pkg.linear"),)),
    ])
    assert index.resolve(2, "linear") == Symbol(SymbolKind.FUNCTION, 1, 1)


def test_a_module_hidden_by_a_function_of_its_name_can_still_be_imported_from() -> None:
    index = ProjectIndex([
        file("pkg", imports=(("linear", "pkg.linear.linear"),), package=True),
        file("pkg.linear", functions=(function(1, "linear"), function(2, "other"))),
        file("user", imports=(("other", "pkg.linear.other"),)),
    ])
    assert index.resolve(2, "other") == Symbol(SymbolKind.FUNCTION, 1, 2)


def test_import_cycles_end() -> None:
    index = ProjectIndex([file("a", imports=(("x", "b.x"),), stars=("b",)), file("b", imports=(("x", "a.x"),), stars=("a",))])
    assert index.resolve(0, "x") is None
    assert index.resolve(1, "y") is None


def test_a_source_folder_without_init_is_a_root_but_never_shadows_torch() -> None:
    index = ProjectIndex([
        file("src.lib", package=True),
        file("src.lib.util", functions=(function(1, "f"),)),
        file("examples.torch.mine"),
        file("user", imports=(("f", "lib.util.f"), ("mine", "torch.mine"))),
    ])
    assert index.resolve(3, "f") == Symbol(SymbolKind.FUNCTION, 1, 1)
    assert index.resolve(3, "mine") == external("torch.mine")


def test_sources_that_a_build_installs_under_another_name_are_found() -> None:
    index = ProjectIndex([
        file("pkg", package=True),
        file("pkg.csrc.attn.window", package=True, imports=(("attend", "pkg.csrc.attn.window.impl.attend"),)),
        file("pkg.csrc.attn.window.impl", functions=(function(1, "attend"),)),
        file("pkg.csrc.single", functions=(function(1, "f"),)),
        file("user", imports=(
            ("attend", "kernels.attn.window.attend"), ("inner", "kernels.attn.window.impl.attend"),
            ("f", "kernels.single.f"), ("other", "kernels.attn.other.attend"),
        )),
    ])  # fmt: skip
    assert index.resolve(4, "attend") == Symbol(SymbolKind.FUNCTION, 2, 1)
    assert index.resolve(4, "inner") == Symbol(SymbolKind.FUNCTION, 2, 1)
    assert index.resolve(4, "f") == external("kernels.single.f")  # one name could be anybody's
    assert index.resolve(4, "other") == external("kernels.attn.other.attend")


def layers() -> ProjectIndex:
    base = file(
        "base",
        functions=(function(1, "Base.forward", owner=0), function(2, "Base.setup", owner=0)),
        classes=(klass(0, "Base", ("nn.Module",), (("forward", 1), ("setup", 2)), (("proj", 2, 5, "nn.Linear()"),)),),
        imports=(("nn", "torch.nn"),),
    )
    child = file(
        "child",
        functions=(function(1, "Child.forward", owner=0), function(2, "Grand.forward", owner=1), function(3, "Grand.__init__", owner=1)),
        classes=(
            klass(0, "Child", ("Base",), (("forward", 1),)),
            klass(1, "Grand", ("Child", "Generic[]"), (("forward", 2), ("__init__", 3)), (("extra", 3, 9, "Child()"),)),
            klass(2, "Config", (), (), (), (("steps", "int"),)),
        ),
        imports=(("Base", "base.Base"), ("Generic", "typing.Generic")),
    )
    return ProjectIndex([base, child])


def test_classes_inherit_across_files() -> None:
    index = layers()
    assert index.mro((1, 1)) == ((1, 1), (1, 0), (0, 0))
    assert index.external_bases((1, 1)) == {"torch.nn.Module", "typing.Generic"}
    assert index.subclasses((0, 0)) == ((1, 0), (1, 1))
    assert index.find_method((1, 1), "setup") == (0, 2)
    assert index.find_method((1, 1), "absent") is None
    assert index.overrides((0, 0), "forward") == ((1, 1), (1, 2))
    assert index.resolve(1, "Grand.setup") == Symbol(SymbolKind.FUNCTION, 0, 2)


def test_stores_come_from_bases_and_else_from_subclasses() -> None:
    index = layers()
    assert index.attribute_stores((1, 1), "proj") == (((0, 2), 5, "nn.Linear()"),)
    assert index.attribute_stores((0, 0), "extra") == (((1, 3), 9, "Child()"),)
    assert index.attribute_stores((0, 0), "absent") == ()
    assert index.attribute_annotation((1, 2), "steps") == ((1, 2), "int")


def test_modules_are_known_by_their_external_base() -> None:
    torch = ["torch.nn.Module", "torch.nn.Linear", "pytorch_lightning.LightningModule"]
    bases = [*torch, "torch.nn.Parameter", "flax.linen.Module", "x.LightningDataModule"]
    classes = tuple(klass(i, f"C{i}", (base,)) for i, base in enumerate(bases))
    index = ProjectIndex([file("m", classes=classes, imports=tuple((b.partition(".")[0], b.partition(".")[0]) for b in bases))])
    assert [index.is_nn_module((0, i)) for i in range(len(bases))] == [True, True, True, False, False, False]
    assert layers().is_nn_module((1, 1))
    assert not layers().is_nn_module((1, 2))


def test_models_and_parts_of_libraries_are_modules() -> None:
    modules = [
        "diffusers.FluxTransformer2DModel", "diffusers.models.transformers.transformer_wan.WanTransformerBlock", "lab.LuminaNextDiT2DModel",
        "transformers.models.llama.modeling_llama.LlamaAttention", "transformers.LlamaForCausalLM", "diffusers.UNet2DConditionModel",
    ]  # fmt: skip
    others = ["diffusers.FluxPipeline", "transformers.LlamaConfig", "lab.Attention", "diffusers.models.attention_processor.AttnProcessor"]
    bases = [*modules, *others]
    classes = tuple(klass(i, f"C{i}", (base,)) for i, base in enumerate(bases))
    index = ProjectIndex([file("m", classes=classes, imports=tuple((b.partition(".")[0], b.partition(".")[0]) for b in bases))])
    assert [index.is_nn_module((0, i)) for i in range(len(bases))] == [True] * len(modules) + [False] * len(others)
    assert [index.inherits_layers((0, i)) for i in range(len(bases))] == [True] * len(modules) + [False] * len(others)


def test_a_class_that_is_its_own_base_ends() -> None:
    index = ProjectIndex([file("m", classes=(klass(0, "A", ("B",)), klass(1, "B", ("A",))))])
    assert index.mro((0, 0)) == ((0, 0), (0, 1))
    assert index.subclasses((0, 0)) == ((0, 1),)


def test_a_method_sees_nested_classes_of_functions_and_its_owner() -> None:
    outline = file(
        "m",
        functions=(function(1, "make"), function(2, "make.Inner.go", owner=0, parent=1), function(3, "make.Inner.go.step", parent=2)),
        classes=(klass(0, "make.Inner", (), (("go", 2),)),),
    )
    index = ProjectIndex([outline])
    assert index.resolve(0, "Inner", 1) == Symbol(SymbolKind.CLASS, 0, 0)
    assert index.resolve(0, "Inner") is None
    assert index.owner((0, 3)) == (0, 0)
    assert index.owner((0, 1)) is None


def test_a_long_chain_of_re_exports_ends() -> None:
    files = [file(f"m{i}", stars=(f"m{i + 1}",)) for i in range(1000)]
    index = ProjectIndex([*files, file("m1000", functions=(function(1, "deep"),))])
    assert index.resolve(950, "deep") == Symbol(SymbolKind.FUNCTION, 1000, 1)
    assert index.resolve(0, "deep") is None
