# The few commands people type; CMake does the work. JOBS=8 make ... for more cores.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: all demo check check-long check-browser check-access docs bench install clean packages packages-check

all: packages
	@cmake -S . -B build -DCMAKE_INSTALL_PREFIX=$(PREFIX) > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@cmake --build build -j $(JOBS) -- --no-print-directory

demo: all
	@scripts/demo.sh build/remat

check: packages-check
	@scripts/check.sh $(JOBS)

# What takes too long for every change: all examples and random models under every strategy for 200 steps each.
check-long: packages-check
	@cmake -S . -B build-check -DREMAT_TESTS=ON -DREMAT_STRICT=ON > /dev/null
	@cmake --build build-check -j $(JOBS) --target test_bits -- --no-print-directory -s
	REMAT_STEPS=200 build-check/tests/test_bits

# The report's pages in a real browser. `make check` runs these too where Chromium is installed; this installs it.
check-browser: all
	@scripts/packages.sh browser
	@REMAT=build/remat PAINT_MS=1000 sh tests/browser/report_page.sh

# The same pages before axe-core, which npm fetches.
check-access: all
	@scripts/packages.sh browser
	@command -v npm >/dev/null || scripts/packages.sh access
	@npm install --silent --no-audit --no-fund --prefix build/npm axe-core@4
	@REMAT=build/remat AXE=build/npm/node_modules/axe-core/axe.min.js sh tests/browser/access.sh

# The manual as a small web site in build/site.
docs: all
	@scripts/packages.sh docs
	@scripts/docs.sh build/site

bench: packages-check
	@scripts/bench.sh $(JOBS)

install: all
	cmake --install build

clean:
	rm -rf build build-check build-sanitize build-threads build.log

# Both install what is missing, by name, and do nothing where nothing is.
packages:
	@scripts/packages.sh build

packages-check:
	@scripts/packages.sh build check
