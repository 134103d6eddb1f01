#!/bin/sh
# Writes src/wire/bindings.rs from include/tarsier_event.h.
#
# Run by `cargo xtask bindings`, or by hand from anywhere, after each change of the header; the output is committed.
# Needs the bindgen program (`cargo install bindgen-cli --version ^0.72`; $BINDGEN overrides its name), libclang and
# rustfmt. `bindings.sh --check` writes nothing and fails if the committed file is not what the header gives.
#
# bindgen adds a compile-time assertion for the size of each struct and the offset of each field, so that a header
# and a file that disagree with the compiler's layout do not build.
set -eu

crate=$(cd "$(dirname "$0")/.." && pwd)
target="$crate/src/wire/bindings.rs"
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

"${BINDGEN:-bindgen}" "$crate/include/tarsier_event.h" \
	--disable-header-comment \
	--raw-line '//! Generated from include/tarsier_event.h by gen/bindings.sh: do not edit.' \
	--raw-line '' \
	--raw-line '#![allow(missing_docs, non_camel_case_types)]' \
	--allowlist-item 'tarsier_.*|TARSIER_.*' \
	--default-enum-style consts \
	--no-prepend-enum-name \
	--use-core \
	--no-doc-comments \
	--with-derive-default \
	--with-derive-custom-struct 'tarsier_.*=zerocopy::FromBytes,zerocopy::IntoBytes,zerocopy::Immutable,zerocopy::KnownLayout' \
	--output "$fresh"
rustfmt --edition 2021 --config max_width=100 "$fresh"

if [ "${1:-}" = --check ]; then
	cmp "$fresh" "$target" || {
		echo "$target is not what include/tarsier_event.h gives: run gen/bindings.sh" >&2
		exit 1
	}
else
	cat "$fresh" >"$target"
fi
