"""Classes whose methods serve a whole request: pipelines, their stages, workers, servers."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.facts.schema import FunctionFlag
from hostlint.heat.nature import is_unused

if TYPE_CHECKING:
    from hostlint.index import ClassId, FunctionId, ProjectIndex

_REQUEST_OWNER = re.compile(r"(Stage|Pipeline|Worker|Server|Handler|Client|Endpoint|Service)(Base|Mixin|Impl)?$")
_PIPELINE = re.compile(r"Pipeline(Base|Mixin|Impl)?$")  # also where it is a module, so that its parts load as one
_REQUEST_METHODS = frozenset({"forward", "__call__", "run", "generate", "execute"})
_CODEC = re.compile(r"Auto[Ee]ncoder|VAE|Vae(?![a-z])|VQModel|Vocoder|HifiGan|HiFiGAN|Safety\w*Checker")
_ENCODERS = re.compile(r"(^|\.)((text|prompt|image|vision)_)?encoders?(\.|$)")  # modules and folders of them
# They make a request's inputs or finish its outputs; no step of the model is taken in them.
_AROUND_STEPS = re.compile(
    r"(Encod|Decod|Embed|Prepar|Prepass|Valid|(Pre|Post)[Pp]rocess|Upscal|Upsampl|Resiz|Load|Sav|Export|Tokeniz)\w*(Stage|Step|Block|Node|Processor)$|"
    r"(Image|Video|Audio|Feature|Speech)\w*(Processor|Extractor)(Fast|Mixin|Base)?$"
)


# What a request shows or tells is read by them once, in front of the model that takes the steps.
_READER = re.compile(
    r"Vision|Visual|Audio|Speech|Whisper|Sig[Ll][Ii][Pp]|C(LIP|lip)|NaVi[tT]|Navi[tT]|MoonVi[tT]|(^|[a-z0-9_])Vi[tT](?![a-z])|"
    r"(Image|Video|Text|Prompt|Caption|Timbre|Lyric|Condition)(Encoder|Tower)|Q[Ff]ormer|Resampler|Connector|(Mesh|Image|Video|Wave)Decoder"
)
_READER_FILE = re.compile(r"(^|_)(vision|visual|audio|speech|whisper|siglip|vit|navit|moonvit|resampler|connectors?)(_|$)")
_STEPPER = re.compile(
    r"UNet|Unet|DiT|Dit(?![a-z])|Transformer[123]D|Denois|Diffusion|For\w*(LM|Generation|Classification)|LM(Model)?$|Rotary|RoPE|Rope"
)
_STEPPER_FILE = re.compile(r"(^|[._])(transformers?|dits?|unets?|schedulers?)([._]|$)")


# They are made when something is set up, or where there is none yet, however the code that makes them reads.
_SET_UP = re.compile(
    r"(Model|Module|Layer|Net|Network|Policy|Engine|Pipeline|Pipe|Stage|Scheduler|Solver|Optimizer|Optim|Runner|Worker|Manager|Loader|Dataset|"
    r"DataModule|Tokenizer|Processor|Cache|Pool|Client|Server|Backend|Handler|Trainer|Env|Environment|Executor|Communicator|Connector|Registry|"
    r"Factory|Builder|Sampler|Buffer|Allocator|Graph|Planner|Planer|Wrapper|Logger|Writer|Timer|Profiler|Group|Config|Configuration|Args|"
    r"Arguments|Params|Settings|Options|Mesh|Queue|Thread|Process|Controller|Adapter|Monitor|Recorder|Workspace|Quantizer|Compiler)(Base|Mixin|Impl|V\d+)?$"
)
_BUILDS = re.compile(r"^_*(build|create|make|construct|setup|get|load)(_|$)")
_CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__new__"})


def class_names(index: ProjectIndex, cid: ClassId) -> list[str]:
    """The class's name and those of everything that it inherits."""
    return [*(index.klass(each).name for each in index.mro(cid)), *sorted(index.external_bases(cid))]


def is_codec(index: ProjectIndex, cid: ClassId) -> bool:
    """Whether the class turns latents into pictures or sound, checks those, or encodes the text of a request."""
    return any(_CODEC.search(index.klass(each).name) for each in index.mro(cid)) or bool(_ENCODERS.search(index.files[cid[0]].module))


def reads_request(index: ProjectIndex, cid: ClassId) -> bool:
    """Whether the class encodes the pictures, the sound or the text of a request."""
    name, module = index.klass(cid).name, index.files[cid[0]].module
    if _STEPPER.search(name) or _STEPPER_FILE.search(module):
        return False
    return bool(_READER.search(name) or _READER_FILE.search(module.rpartition(".")[2]))


def is_request_owner(index: ProjectIndex, cid: ClassId) -> bool:
    """Whether the class is a pipeline, a stage, a worker or the like."""
    names = _PIPELINE if index.is_nn_module(cid) else _REQUEST_OWNER
    return any(names.search(name) for name in class_names(index, cid))


def is_request_method(index: ProjectIndex, fid: FunctionId) -> bool:
    """Whether the function serves a whole request by its class and name."""
    function = index.function(fid)
    return function.owner >= 0 and function.name in _REQUEST_METHODS and is_request_owner(index, (fid[0], function.owner))


def works_around_steps(index: ProjectIndex, fid: FunctionId) -> bool:
    """Whether the function belongs to a stage that encodes, decodes, prepares or checks."""
    owner = index.owner(fid)
    return owner is not None and not index.is_nn_module(owner) and bool(_AROUND_STEPS.search(index.klass(owner).name))


def is_made_in_steps(index: ProjectIndex, fid: FunctionId) -> bool:
    """Whether the function makes an object that a step may want anew: a result, a batch's description, a metric."""
    function = index.function(fid)
    if function.name not in _CONSTRUCTORS or function.owner < 0 or function.flags & FunctionFlag.COLD or is_unused(index.files[fid[0]]):
        return False
    cid = (fid[0], function.owner)
    return not (index.is_nn_module(cid) or any(_SET_UP.search(name) for name in class_names(index, cid)))


def builds(name: str) -> bool:
    """A function of that name makes whatever it is asked for."""
    return bool(_BUILDS.search(name))


def keeps(index: ProjectIndex, fid: FunctionId, chain: str) -> bool:
    """Whether the function keeps what a call of that chain makes in an attribute of its object."""
    owner = index.owner(fid)
    stores = index.klass(owner).attributes if owner is not None else ()
    return any(function == fid[1] and stored == f"{chain}()" for _, function, _, stored in stores)
