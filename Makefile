# `make help` lists the targets.

# The TensorFlow release line to work with: 2.21, 2.18, 2.16, 2.12, 2.4 or 1.15, each in a virtual
# environment of its own; or any Python that has a TensorFlow: PYTHON=/path/to/python.
TF ?= 2.21
venv = $(if $(filter 2.21,$(1)),.venv,.venv-$(1))
ifeq ($(origin PYTHON),undefined)
PYTHON := $(call venv,$(TF))/bin/python
environment := $(call venv,$(TF))/.complete
endif

# CI sets these: tests fail, instead of being left out, without Python 3.7 for TensorFlow 1.15, without
# a Python for TensorFlow 2.4, without Java for these lines of TensorFlow, and without what the host
# program needs.
REQUIRE_TF_1_15 ?=
REQUIRE_KERAS_2 ?=
REQUIRE_JAVA ?=
REQUIRE_HOST ?=
export REQUIRE_HOST
# So does this: the wheel's test fails, instead of leaving out a TensorFlow whose package cannot be
# downloaded or whose Python is not found.
REQUIRE_WHEEL ?=

# With BLOCKCELL_WHOLE=1 in the environment, the tests take the whole grids of sizes instead of a
# sample.

# Tests in as many processes as there are processors, each file in one of them: what a file sets up once
# runs once.
PYTEST = -m pytest $(if $(environment),--numprocesses=auto --maxprocesses=4 --dist=loadfile)
java_tests = test-java-1.15 test-java-2.4 test-java-2.18

.DEFAULT_GOAL := all
.PHONY: all lib demo test test-rust build-test-libs build-rust-tests test-python test-1.15 test-keras-2 test-keras-newest test-nightly fuzz-graphs robustness soak fuzz asan memcheck leaks tsan test-pool test-host test-java $(java_tests) matrix wheel wheel-test reproducible deny generated version licences requirements bench bench-peers bench-cudnn bench-passes bench-inference bench-steps bench-tf2 bench-bfloat16 bench-keras bench-predict bench-zoo bench-int8 lint format docs site clean help aarch64 aarch64-rust aarch64-tensorflow

all: lib ## Build the library, and link it as build/libblockcell.so (the default)
	@ln -sf "$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so" build/libblockcell.so

lib: $(environment) ## Build build/tf-<major.minor>/libblockcell.so for the TensorFlow of TF=... or PYTHON=...
	@scripts/build_lib.sh $(PYTHON)

demo: lib ## Train a language model with TensorFlow's kernels and with ours, side by side (TF=1.15 too)
	@$(PYTHON) examples/char_lm/demo.py --library "build/$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so"

test: ## Run all tests
	@$(MAKE) --no-print-directory --jobs=5 build-rust-tests $$(scripts/found_environments.sh)
	@$(MAKE) --no-print-directory --jobs=2 test-rust build-test-libs
	@$(MAKE) --no-print-directory test-pool test-python test-1.15 test-keras-2 test-host test-java

test-rust: ## Test the kernels and the rewrites alone: no Python, no C++, no TensorFlow
	$(rust_tests)

# Built while the Rust tests run, because compiling the kernels takes one processor.
build-test-libs:
	@for environment in $$(scripts/found_environments.sh); do \
	  scripts/build_lib.sh "$${environment%/.complete}/bin/python" || exit; done
	@scripts/build_lib.sh .venv/bin/python failpoints

# Compiled while environments are downloaded.
build-rust-tests:
	@$(rust_tests) --no-run

# Without make's flags, whose jobserver rustdoc would look for and not find.
rust_tests = env -u MAKEFLAGS -u MFLAGS cargo test --locked --quiet --package blockcell-kernels --package blockcell-graphs

test-python: lib ## Test the library in the TensorFlow of TF=... or PYTHON=...
	@scripts/build_lib.sh $(PYTHON) failpoints
	$(PYTHON) $(PYTEST)

test-1.15: ## Test the library in TensorFlow 1.15, where Python 3.7 is found
	@if scripts/find_python.sh 1.15 > /dev/null || [ -n "$(REQUIRE_TF_1_15)" ]; \
	then $(MAKE) --no-print-directory test-python TF=1.15; \
	else echo "skipped TensorFlow 1.15: no Python 3.7 found (put python3.7 on the PATH, or use pyenv)"; fi

keras_2_tests = $(addprefix tests/python/,keras_layers/test_keras2_layers.py keras_layers/test_scope.py \
	keras_layers/test_workers.py keras_layers/test_switch.py graph_pass/test_keras2.py)
last_keras_2_tests = $(addprefix tests/python/keras_layers/,test_keras2_layers.py test_scope.py test_equality.py test_inputs.py)

test-keras-2: .venv/.complete ## Test the last Keras 2, as tf_keras, and that of TensorFlow 2.4, where a Python for it is found
	@$(MAKE) --no-print-directory lib TF=2.21
	@TF_USE_LEGACY_KERAS=1 .venv/bin/python $(PYTEST) $(last_keras_2_tests)
	@if missing=$$(scripts/find_python.sh 2.4 2>&1 > /dev/null) || [ -n "$(REQUIRE_KERAS_2)" ]; \
	then $(MAKE) --no-print-directory lib TF=2.4 && .venv-2.4/bin/python $(PYTEST) $(keras_2_tests); \
	else echo "skipped Keras 2: $$missing"; fi

test-keras-newest: .venv-keras-newest/.complete ## Test the Keras layers with the newest Keras that the registry has
	@scripts/build_lib.sh .venv-keras-newest/bin/python
	@.venv-keras-newest/bin/python $(PYTEST) tests/python/keras_layers

nightly_tests = $(addprefix tests/python/,library/test_loading.py library/test_takeover.py kernels/test_against_stock.py \
	keras_layers/test_equality.py graph_pass/test_models.py)

test-nightly: .venv-nightly/.complete ## Build for the newest nightly build of TensorFlow that the registry has, verify, and test
	@scripts/build_lib.sh .venv-nightly/bin/python
	@PYTHONPATH=python .venv-nightly/bin/python -m blockcell verify --quick
	@.venv-nightly/bin/python $(PYTEST) $(nightly_tests)

# Flags for `make fuzz-graphs`, such as "--graphs=100000 --seed=1".
FUZZ_FLAGS ?=

fuzz-graphs: lib ## Run random graphs with and without the rewrites (FUZZ_FLAGS="--graphs=100000 --seed=1"; TF=1.15 too)
	@PYTHONPATH=tests/python $(PYTHON) -m fuzzing --results build/fuzz $(FUZZ_FLAGS)

# Where the checks of robustness run, and flags for `python -m robustness`, such as "--share=10 --ops BlockLSTM".
ROBUSTNESS_TF ?= 2.21 1.15
ROBUSTNESS_FLAGS ?=

robustness: ## Call every op in thousands of malformed ways, and all at once in many threads, in 2.21 and 1.15; fuzz
	@for tf in $(ROBUSTNESS_TF); do $(MAKE) --no-print-directory robustness-$$tf || exit; done
	@$(MAKE) --no-print-directory fuzz

robustness-%:
	@$(MAKE) --no-print-directory lib TF=$*
	@PYTHONPATH=tests/python:python $(call venv,$*)/bin/python -m robustness --results build/robustness $(ROBUSTNESS_FLAGS)
	@PYTHONPATH=tests/python:python $(call venv,$*)/bin/python -m robustness.load --seconds 120

# How long the demo's models train.
MINUTES ?= 20

soak: lib ## Train the demo's models for a long time; losses, memory and steps must be steady (MINUTES=20)
	@$(PYTHON) examples/char_lm/soak.py --library "build/$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so" --minutes $(MINUTES)

# How long each target of `make fuzz` runs, and flags of libFuzzer, such as -runs=1000000.
FUZZ_SECONDS ?= 30
LIBFUZZER_FLAGS ?=

fuzz: ## Call the kernels and the rewrites with arbitrary bytes, under AddressSanitizer (a minute; FUZZ_SECONDS=600)
	@for target in kernels graphs; do \
	  scripts/fuzz.sh $$target -max_total_time=$(FUZZ_SECONDS) $(LIBFUZZER_FLAGS) || exit; done

asan: ## Run the Rust tests under AddressSanitizer
	@scripts/asan.sh

memcheck: lib ## Run every op in TensorFlow under valgrind (10 minutes; needs valgrind)
	@$(PYTHON) scripts/memcheck.py

leaks: lib ## Call every op 100,000 times, and watch the memory of the process
	@PYTHONPATH=python:tests/python:tests/python/processes $(PYTHON) -m leaks

tsan: ## Drive the thread pool under ThreadSanitizer (a minute)
	@scripts/test_pool.sh 5 thread

test-pool: ## Drive the thread pool alone: no Python, no TensorFlow
	@scripts/test_pool.sh

test-host: lib ## Test the library in a Rust program that hosts TensorFlow without Python
	@scripts/test_host.sh $(PYTHON)

test-java: $(java_tests) ## Test the library in Java programs, one for each Java API of TensorFlow, where Java is found

$(java_tests): test-java-%:
	@if missing=$$({ scripts/find_java.sh && scripts/find_python.sh $*; } 2>&1 > /dev/null) || [ -n "$(filter $*,$(REQUIRE_JAVA))" ]; \
	then $(MAKE) --no-print-directory lib TF=$* && scripts/test_java.sh $(call venv,$*)/bin/python; \
	else echo "skipped Java on TensorFlow $*: $$missing"; fi

matrix: $(environment) ## Build, load and test with every supported TensorFlow whose Python is found
	@$(PYTHON) scripts/matrix.py

wheel_flags = $(if $(MINORS),--minors $(MINORS)) $(if $(REQUIRE_WHEEL),--require)

# The machine that a wheel is for, if it is another one: aarch64.
ARCH ?=
for_arch = $(filter aarch64,$(ARCH))

wheel: .venv-wheel/.complete $(for_arch:%=build/%/complete) ## Make one wheel with libraries for TensorFlow 1.15 and 2.4 to 2.21 (MINORS="2.18 2.21": only these; ARCH=aarch64)
	@$(for_arch:%=scripts/%.sh) .venv-wheel/bin/python scripts/make_wheel.py $(ARCH:%=--arch %) $(wheel_flags)

aarch64: aarch64-rust aarch64-tensorflow ## Test for aarch64 under emulation (Debian 12; some hours)

aarch64-rust: build/aarch64/complete ## Test the kernels and the rewrites alone for aarch64, under emulation
	@scripts/aarch64.sh $(rust_tests) --release

aarch64-tensorflow: build/aarch64/tensorflow-2.21/complete build/aarch64/tensorflow-2.12/complete ## Test the library in TensorFlow for aarch64, under emulation
	@scripts/aarch64_tests.sh .venv/bin/python

build/aarch64/complete:
	@scripts/aarch64_setup.sh

build/aarch64/tensorflow-%/complete: python/requirements/aarch64-%.txt .venv/.complete
	@scripts/aarch64_setup.sh tensorflow $* .venv/bin/python

wheel-test: .venv-wheel/.complete ## Install the wheel beside each TensorFlow alone, and run blockcell verify --quick
	@.venv-wheel/bin/python scripts/test_wheel.py $(wheel_flags)

reproducible: $(environment) ## Build the library twice, in two places, and compare the bytes (10 minutes)
	@$(PYTHON) scripts/reproducible.py

deny: ## Check licences and sources of all crates, and known vulnerabilities (needs cargo-deny and GitHub)
	@for manifest in Cargo.toml tests/host/Cargo.toml; do \
	  cargo deny --manifest-path $$manifest --config deny.toml --locked check $(DENY_ALLOW) $(DENY) || exit; done

# What is checked, such as "licenses bans sources" where GitHub cannot be reached. The crates of one
# manifest need not have all licences that are allowed.
DENY ?= all
DENY_ALLOW = --allow license-exception-not-encountered --allow license-not-encountered

bench: lib ## Time TensorFlow's kernels and ours side by side, at all shapes (takes hours)
	@PYTHONPATH=python $(PYTHON) -m blockcell bench --shapes all

bench-peers: .venv-peers/.complete ## Time sequences: ours, TensorFlow's, Keras's, PyTorch's, ONNX Runtime's (10 minutes; 3 GB download)
	@scripts/build_lib.sh .venv-peers/bin/python
	@.venv-peers/bin/python -m bench.peers $(PEERS_FLAGS)

# Flags for `make bench-peers`, such as "--work inference --threads 1".
PEERS_FLAGS ?=

bench-cudnn: .venv-peers/.complete .venv-1.15/.complete ## Time networks made for cuDNN against the cells of TensorFlow 1.15, and PyTorch
	@for python in .venv-1.15/bin/python .venv-peers/bin/python; do \
	  scripts/build_lib.sh $$python && $$python -m bench.cudnn || exit; done

bench-passes: lib ## Time the graph passes on large and deep graphs (10 minutes)
	@$(PYTHON) -m bench.passes

# Where frozen graphs are timed, and flags for `python -m bench.inference`, such as --seconds=1.
INFERENCE_TF ?= 1.15 2.21
INFERENCE_FLAGS ?=

bench-inference: .venv/.complete .venv-1.15/.complete .venv-2.4/.complete ## Time frozen graphs of TensorFlow 1.15 and SavedModels of Keras 2 and 3, in 1.15 and 2.21 (10 minutes)
	@.venv-1.15/bin/python -m bench.inference.write
	@PYTHONPATH=python .venv-2.4/bin/python -m bench.inference.write_keras
	@.venv/bin/python -m bench.inference.write_keras
	@for tf in $(INFERENCE_TF); do $(MAKE) --no-print-directory bench-inference-$$tf || exit; done  # never two at a time

bench-inference-%:
	@$(MAKE) --no-print-directory lib TF=$*
	@$(call venv,$*)/bin/python -m bench.inference --library build/tf-$*/libblockcell.so $(INFERENCE_FLAGS)

# Where published architectures are timed, and flags for `python -m bench.zoo`, such as --nets lm_1b.
ZOO_TF ?= 1.15 2.21
ZOO_FLAGS ?=

bench-zoo: .venv/.complete .venv-1.15/.complete ## Time published architectures, in 1.15 and 2.21, and write the table of docs/graphs.md (15 minutes)
	@.venv-1.15/bin/python -m bench.zoo.write
	@for tf in $(ZOO_TF); do $(MAKE) --no-print-directory bench-zoo-$$tf || exit; done  # never two at a time
	@.venv/bin/python -m bench.zoo.page

bench-zoo-%:
	@$(MAKE) --no-print-directory lib TF=$*
	@$(call venv,$*)/bin/python -m bench.zoo --library build/tf-$*/libblockcell.so $(ZOO_FLAGS)

bench-int8: .venv/.complete .venv-1.15/.complete lib ## Compare models in int8 with float32, and write the table of docs/int8.md (5 minutes)
	@.venv-1.15/bin/python -m bench.zoo.write
	@.venv/bin/python -m bench.int8 --library build/tf-2.21/libblockcell.so

# Where whole training steps are timed, and flags for `run.py`, `run_tf2.py` or `run_bfloat16.py` in `examples/word_lm`, such as --rounds=4.
STEPS_TF ?= 1.15 2.21
STEPS_FLAGS ?=

bench-steps: ## Time whole training steps of graphs made by TensorFlow 1.15, in 1.15 and 2.21 (10 minutes)
	@for tf in $(STEPS_TF); do $(MAKE) --no-print-directory bench-steps-$$tf || exit; done  # never two at a time
	@$(call venv,$(lastword $(STEPS_TF)))/bin/python examples/word_lm/report.py build/word_lm/tf-*.json \
	    --plot build/word_lm/steps.svg

bench-steps-%:
	@$(MAKE) --no-print-directory lib TF=$*
	@$(call venv,$*)/bin/python examples/word_lm/run.py --library build/tf-$*/libblockcell.so $(STEPS_FLAGS)

bench-tf2: lib ## Time the word model in TensorFlow 2 code: TensorFlow's kernels, our cells, our fused cells (10 minutes)
	@$(PYTHON) examples/word_lm/run_tf2.py --library "build/$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so" $(STEPS_FLAGS)
	@$(PYTHON) examples/word_lm/report.py build/word_lm/tf2-*.json --plot build/word_lm/tf2.svg

bench-bfloat16: lib ## Time the word model in float32 and in bfloat16, on TensorFlow's kernels and on ours (10 minutes)
	@$(PYTHON) examples/word_lm/run_bfloat16.py --library "build/$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so" $(STEPS_FLAGS)

bench-keras: .venv-keras/.complete ## Train Keras classifiers before and after blockcell.keras.enable() (10 minutes)
	@scripts/build_lib.sh .venv-keras/bin/python
	@.venv-keras/bin/python examples/keras_classifier/run.py --data standard_library digits \
	    --library "build/$$(scripts/tf_minor.sh .venv-keras/bin/python)/libblockcell.so"

bench-predict: lib ## Time Keras's predict before and after blockcell.keras.enable() (5 minutes)
	@$(PYTHON) -m bench.predict --library "build/$$(scripts/tf_minor.sh $(PYTHON))/libblockcell.so" $(PREDICT_FLAGS)

# Flags for `make bench-predict`, such as --threads 1.
PREDICT_FLAGS ?=

include bench/figures.mk

pool_test = $(shell find tests/pool -name "*.cc" -o -name "*.h")

lint: .venv-lint/.complete $(environment) ## Check formats, lints and types of Rust, C++ and Python
	cargo fmt --all --check
	cargo clippy --locked --package blockcell-kernels --all-targets --features bench_internals -- -D warnings
	cargo clippy --locked --package blockcell-graphs --all-targets -- -D warnings
	cargo clippy --locked --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --locked --package blockcell-failpoints --all-features -- -D warnings
	BLOCKCELL_WERROR=1 scripts/cargo_tf.sh $(PYTHON) clippy --no-deps -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --package blockcell-kernels --package blockcell-graphs --no-deps --quiet
	.venv-lint/bin/clang-format --dry-run -Werror cpp/*.* link/*.* $(pool_test)
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	.venv-lint/bin/mypy

format: .venv-lint/.complete ## Format all sources
	cargo fmt --all
	.venv-lint/bin/clang-format -i cpp/*.* link/*.* $(pool_test)
	.venv-lint/bin/ruff check --fix-only --quiet .
	.venv-lint/bin/ruff format --quiet .

generated: ## Write what is generated from the declarations of the ops: Python's table, and the page of ops
	BLOCKCELL_WRITE_GENERATED=1 cargo test --locked --quiet --package blockcell-kernels --test generated

version: ## Write the version of python/blockcell/version.py wherever else it has to stand
	@python3 scripts/set_version.py

licences: ## Write the notices of the crates that are linked into the library
	@python3 scripts/licences.py

requirements: .venv-lint/.complete ## Write python/requirements/*.txt, with hashes, from the *.in beside them
	@scripts/hash_requirements.sh .venv-lint/bin/uv

docs: ## Build the Rust documentation in target/doc
	cargo doc --locked --package blockcell-kernels --package blockcell-graphs --no-deps

site: .venv-docs/.complete ## Build the documentation's site in build/site; warnings are errors
	.venv-docs/bin/mkdocs build --strict --quiet

clean: ## Remove what was built; keeps the virtual environments
	rm -rf build dist target examples/java/*/target

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv/.complete: python/requirements/tf-2.21.txt
	@scripts/make_venv.sh .venv "$$(scripts/find_python.sh 2.21)" $<

.venv-lint/.complete: python/requirements/lint.txt
	@scripts/make_venv.sh .venv-lint "$$(scripts/find_python.sh 2.21)" $<

.venv-wheel/.complete: python/requirements/wheel.txt
	@scripts/make_venv.sh .venv-wheel "$$(scripts/find_python.sh 2.21)" $<

.venv-docs/.complete: python/requirements/docs.txt
	@scripts/make_venv.sh .venv-docs "$$(scripts/find_python.sh 2.21)" $<

.venv-peers/.complete: python/requirements/peers.txt
	@scripts/make_venv.sh .venv-peers "$$(scripts/find_python.sh 2.21)" $<

.venv-keras/.complete: python/requirements/keras.txt
	@scripts/make_venv.sh .venv-keras "$$(scripts/find_python.sh 2.21)" $<

# Whatever is newest today; and what only these tests need.
.venv-keras-newest/.complete: python/requirements/tf-2.21.txt
	@scripts/make_venv.sh .venv-keras-newest "$$(scripts/find_python.sh 2.21)" $<
	@.venv-keras-newest/bin/python -m pip install --quiet --upgrade keras tf_keras onnx tf2onnx

# Whatever is newest today, with what it asks for itself. Remove the folder for a newer one.
.venv-nightly/.complete:
	@echo "setting up .venv-nightly with tf-nightly-cpu"
	@"$$(scripts/find_python.sh 2.21)" -m venv --clear .venv-nightly
	@.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check --pre tf-nightly-cpu
	@.venv-nightly/bin/python -m pip install --quiet --disable-pip-version-check pytest pytest-xdist click rich
	@touch $@

.venv-%/.complete: python/requirements/tf-%.txt
	@scripts/make_venv.sh .venv-$* "$$(scripts/find_python.sh $*)" $<
