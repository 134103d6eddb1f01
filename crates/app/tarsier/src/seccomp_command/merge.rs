//! `tarsier seccomp merge`, `optimise`, `disasm` and `asm`.

use super::filters;
use crate::answer::answered;
use anyhow::{bail, Result};
use cli::messages::report;
use cli::seccomp::Format;
use cli::seccomp::{ConvertArgs, MergeArgs, OptimiseArgs};
use seccomp::{merge, optimise, Chain, Filter, Weights};

/// Merges a chain and prints the result.
pub(super) fn merge_chain(args: &MergeArgs) -> Result<u8> {
    let named = filters::one(&args.source)?;
    let chain = &named.chain;
    if chain.notifying() > 1 {
        report!(
            "tarsier: note: {} filters can ask a supervisor (USER_NOTIF). One filter of a chain can have a listener, and for the others the kernel answers ENOSYS; in the merged filter all ask",
            chain.notifying()
        );
    }

    let merged = merge(chain, &Weights::usual(), args.limit)?;

    if let Some(too_long) = merged.too_long {
        let needs = match too_long.insns {
            Some(insns) => format!("one filter would need {insns} instructions"),
            None => "one filter cannot be computed within the limits of memory".into(),
        };
        let parts: Vec<String> = merged.parts.iter().map(usize::to_string).collect();
        report!(
            "tarsier: {needs}, and the limit is {}; from the oldest, these many were merged into one: {}",
            too_long.limit,
            parts.join(" ")
        );
    }

    report!(
        "tarsier: {} filters, {} instructions -> {} of {}: proven to decide every call alike",
        chain.filters().len(),
        chain.insns(),
        merged.chain.filters().len(),
        merged.chain.insns()
    );
    let written = filters::write(
        &filters::render(&merged.chain, args.format),
        args.output.as_deref(),
    );

    answered(u8::from(merged.too_long.is_some()), written)
}

/// Shortens a filter and prints it.
pub(super) fn shorten(args: &OptimiseArgs) -> Result<u8> {
    let chain = filters::of_file(&args.filter)?;
    let filter = only(&chain)?;
    let before = filter.insns().len();
    let result = match optimise(filter, &Weights::usual())? {
        Some(shorter) => {
            report!(
                "tarsier: {before} instructions -> {}: proven to decide every call alike",
                shorter.insns().len()
            );
            shorter
        }
        None => {
            report!("tarsier: {before} instructions: nothing shorter was found");
            filter.clone()
        }
    };

    let bytes = super::compile::render(&result, args.format);
    filters::write(&bytes, args.output.as_deref())?;

    Ok(0)
}

fn only(chain: &Chain) -> Result<&Filter> {
    match chain.filters() {
        [filter] => Ok(filter),
        filters => bail!(
            "the file holds {} filters; use `tarsier seccomp merge`",
            filters.len()
        ),
    }
}

/// Prints a filter or every filter of a chain in another form; as a listing, those of every thread.
pub(super) fn convert(args: &ConvertArgs, usual: Format) -> Result<u8> {
    let format = args.format.unwrap_or(usual);
    let mut found = filters::chains(&args.source)?;
    found.retain(|named| !named.chain.filters().is_empty());
    let bytes = match (found.as_slice(), format) {
        ([_, _, ..], Format::Listing) => {
            let parts = found
                .iter()
                .map(|named| format!("{}\n{}", named.name, listing(&named.chain)));
            parts.collect::<Vec<_>>().join("\n").into_bytes()
        }
        ([only], Format::Listing) => listing(&only.chain).into_bytes(),
        _ => filters::render(&filters::one(&args.source)?.chain, format),
    };

    filters::write(&bytes, args.output.as_deref())?;

    Ok(0)
}

fn listing(chain: &Chain) -> String {
    match chain.filters() {
        [filter] => seccomp::text::listing(filter),
        several => several
            .iter()
            .enumerate()
            .map(|(index, filter)| format!("filter {index}\n{}", seccomp::text::listing(filter)))
            .collect(),
    }
}
