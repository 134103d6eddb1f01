#!/bin/sh
# Writes src/shared.rs from programs/shared.h.
#
# Run by `cargo xtask bindings`, or by hand from anywhere, after each change of the header; the output is committed.
# Needs the bindgen program (`cargo install bindgen-cli --version ^0.72`; $BINDGEN overrides its name), libclang and
# rustfmt. `bindings.sh --check` writes nothing and fails if the committed file is not what the header gives.
#
# Of what shared.h includes, only `struct gate` is taken over. Values of the tables and of events have their Rust
# types in crates/core/plan and crates/log/record; where a struct of shared.h holds some, they are bytes of the right size here.
#
# bindgen adds a compile-time assertion for the size of each struct and the offset of each field, so that a header
# and a file that disagree with the compiler's layout do not build.
set -eu

crate=$(cd "$(dirname "$0")/.." && pwd)
target="$crate/src/shared.rs"
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

"${BINDGEN:-bindgen}" "$crate/programs/shared.h" \
	--disable-header-comment \
	--raw-line '//! Generated from programs/shared.h by gen/bindings.sh: do not edit.' \
	--raw-line '' \
	--raw-line '#![allow(missing_docs, non_camel_case_types)]' \
	--raw-line '' \
	--raw-line 'use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};' \
	--raw-line '' \
	--allowlist-file '.*/programs/shared\.h' \
	--allowlist-item 'gate|GATE_OPEN' \
	--opaque-type 'table_.*|tarsier_.*' \
	--default-enum-style consts \
	--no-prepend-enum-name \
	--use-core \
	--no-doc-comments \
	--with-derive-partialeq \
	--with-derive-eq \
	--with-derive-custom-struct '.*=FromBytes,IntoBytes,Immutable,KnownLayout' \
	--output "$fresh"
rustfmt --edition 2021 --config max_width=100 "$fresh"

if [ "${1:-}" = --check ]; then
	cmp "$fresh" "$target" || {
		echo "$target is not what programs/shared.h gives: run gen/bindings.sh" >&2
		exit 1
	}
else
	cat "$fresh" >"$target"
fi
