# The front door. Meson and ninja do the work; tools/install-deps brings what
# is missing (on Debian, as root). Everything lands in $(BUILD).
BUILD ?= build
SECONDS ?= 60
MESON = meson setup $(if $(filter true,$(CI)),--werror)
export PATH := $(PATH):/usr/sbin:/sbin

all: build
build: $(BUILD)/build.ninja
	ninja -C $(BUILD)
$(BUILD)/build.ninja:
	tools/install-deps build
	$(MESON) $(BUILD)
build-asan/build.ninja: $(BUILD)/build.ninja
	meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false
build-fuzz/build.ninja: $(BUILD)/build.ninja
	tools/install-deps lint
	CC=clang meson setup build-fuzz -Dfuzz=true -Db_lundef=false

demo: build
	tools/demo $(BUILD)
check: build
	tools/install-deps check
	tests/run $(BUILD)
build-asan: build-asan/build.ninja
	ninja -C build-asan
check-asan: build-asan
	UBSAN_OPTIONS=halt_on_error=1 tests/run build-asan unit fuzz-replay malloc
check-vm: build
	tools/install-deps vm
	tests/vm/run $(BUILD)
lint: build
	tools/install-deps lint
	tools/lint $(BUILD)
fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz
	tests/fuzz/run build-fuzz $(SECONDS)
bench: build
	tools/install-deps bench
	bench/run $(BUILD)
install: build
	meson install -C $(BUILD) --no-rebuild
clean:
	rm -rf $(BUILD) build-asan build-fuzz
.PHONY: all build build-asan demo check check-asan check-vm lint fuzz bench install clean
