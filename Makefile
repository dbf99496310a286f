# The few commands people type; CMake does the work. make -j8 or JOBS=8 make for more cores, V=1 for every command.
# `make` alone installs no packages; the others install what they need and say what.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
jobs = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),$(JOBS))

.NOTPARALLEL:
.PHONY: all demo demo-finetune check check-long check-faults check-cuda bench-cuda check-ranks check-torch check-arm check-browser check-access coverage fuzz docs bench python install \
	uninstall clean

all:
	@scripts/packages.sh --ask build
	@scripts/build.sh "$(jobs)"

demo:
	@scripts/packages.sh build
	@scripts/build.sh "$(jobs)"
	@scripts/demo.sh build/remat

# A small language model from scratch, and an adapter for a second task.
demo-finetune:
	@scripts/packages.sh build
	@scripts/build.sh "$(jobs)"
	@scripts/demo_finetune.sh build/remat

check:
	@scripts/packages.sh build check
	@scripts/check.sh "$(jobs)"

# What takes too long for every change: all examples and random models under every strategy for 200 steps each, and 1,000 random
# graphs at random budgets.
check-long:
	@scripts/packages.sh build check
	@scripts/configure.sh build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON
	@env -u MAKEFLAGS cmake --build build-check -j "$(jobs)" --target test_bits test_graph_monotone -- --no-print-directory -s
	REMAT_STEPS=200 build-check/tests/test_bits
	REMAT_SWEEPS=1000 build-check/tests/test_graph_monotone

# Every allocation and every system call of every command failed in turn, and 1,000 kills. `make check` runs a sample.
check-faults:
	@scripts/packages.sh build check
	@scripts/configure.sh build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON
	@env -u MAKEFLAGS cmake --build build-check -j "$(jobs)" --target fault_campaign -- --no-print-directory -s
	REMAT=build-check/remat REMAT_FAULTS=build-check/tests/preloaded_faults.so build-check/tests/fault_campaign --kills 1000

# All kernels, layers, example models and bits on a GPU, against the processor. Says "skipped" where there is none.
check-cuda:
	@scripts/packages.sh build check
	@scripts/configure.sh build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON
	@scripts/check_cuda.sh "$(jobs)"

# GPT-2 of three sizes on a GPU: step times and memory, with everything kept and within budgets.
bench-cuda:
	@scripts/packages.sh build
	@scripts/build.sh "$(jobs)"
	@scripts/bench_cuda.sh build/remat

# All example models with up to 8 ranks, every --shard and pipelines: the bits of one process. 500 random kills of a random rank.
# `make check` compares two models and makes three kills.
check-ranks:
	@scripts/packages.sh build check
	@scripts/build.sh "$(jobs)"
	scripts/compare_ranks.sh build/remat
	scripts/kill_ranks.sh build/remat 500

# Modules of torchvision (and transformers, where it is installed) planned at five budgets each: the same bits. `make check` runs small
# nets. Takes minutes.
check-torch:
	@scripts/packages.sh build torch
	@scripts/build.sh "$(jobs)"
	@cmake --build build --target remat_python -- --no-print-directory -s
	PYTHONPATH=build/python /usr/bin/python3 bench/torch/library_modules.py --batch 2

# A build for 64-bit ARM, run by qemu: the same plans and, with portable kernels, the same weights as here. `make check`
# runs a short one where the packages are installed.
check-arm:
	@scripts/packages.sh build arm
	@scripts/build.sh "$(jobs)"
	@scripts/check_arm.sh "$(jobs)" long

# The report's pages in a real browser. `make check` runs these too where Chromium is installed; this installs it.
check-browser:
	@scripts/packages.sh build browser
	@scripts/build.sh "$(jobs)"
	@REMAT=build/remat sh tests/browser/report_page.sh
	@REMAT=build/remat sh tests/browser/report_figures.sh

# The same pages before axe-core, which npm fetches.
check-access:
	@scripts/packages.sh build browser
	@command -v npm >/dev/null || scripts/packages.sh access
	@scripts/build.sh "$(jobs)"
	@npm install --silent --no-audit --no-fund --prefix build/npm axe-core@4
	@REMAT=build/remat AXE=build/npm/node_modules/axe-core/axe.min.js sh tests/browser/access.sh

# Which lines and branches the tests run; a report in build-coverage/html. Takes about as long as `make check`.
coverage:
	@scripts/packages.sh build check coverage
	@scripts/coverage.sh "$(jobs)"

# Every reader of files and texts under libFuzzer, five minutes each. SECONDS_EACH=1800 TARGETS="json plan" make fuzz for
# other times and only these. `make check` replays what was found before (tests/fuzz/corpus).
fuzz:
	@scripts/packages.sh build check
	@JOBS=1 scripts/fuzz.sh --build "$(jobs)"

# The manual as a small web site in build/site.
docs:
	@scripts/packages.sh build docs
	@scripts/build.sh "$(jobs)"
	@scripts/docs.sh build/site

bench:
	@scripts/packages.sh build check
	@scripts/bench.sh "$(jobs)"

# The Python package as a wheel in python/dist, with the shared library inside: pip install python/dist/*.whl
python:
	@scripts/packages.sh build python
	@scripts/build.sh "$(jobs)"
	@scripts/wheel.sh build python/dist

# `sudo make install` builds as the owner of the tree, so that nothing of root's is left in it.
install:
	@scripts/as_owner.sh scripts/packages.sh --ask build
	@scripts/as_owner.sh scripts/build.sh "$(jobs)"
	@scripts/install.sh "$(PREFIX)"

uninstall:
	@scripts/install.sh --remove "$(PREFIX)"

clean:
	rm -rf *.gcov python/dist build build-check build-sanitize build-threads build-arm build-coverage build-fuzz demo.html demo.jsonl demo.safetensors demo-finetune first_plan multiply_add rnn_bptt heat_adjoint
