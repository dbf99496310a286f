# The few commands people type; CMake does the work. JOBS=8 make ... for more cores.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: all demo check bench install clean packages packages-check

all: packages
	@cmake -S . -B build -DCMAKE_INSTALL_PREFIX=$(PREFIX) > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@cmake --build build -j $(JOBS) -- --no-print-directory

demo: all
	@scripts/demo.sh build/remat

check: packages-check
	@scripts/check.sh $(JOBS)

bench: packages-check
	@scripts/bench.sh $(JOBS)

install: all
	cmake --install build

clean:
	rm -rf build build-check build-sanitize build.log

# Both install what is missing, by name, and do nothing where nothing is.
packages:
	@scripts/packages.sh build

packages-check:
	@scripts/packages.sh build check
