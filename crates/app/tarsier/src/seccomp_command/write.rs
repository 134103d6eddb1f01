//! `tarsier seccomp write`: a profile in another form.

use super::{filters, source};
use anyhow::{Context as _, Result};
use cli::seccomp::{ProfileForm, WriteArgs};
use seccomp::profile::convert;

/// Prints the profile, or writes it to a file.
pub(super) fn write(args: &WriteArgs) -> Result<u8> {
    let context = source::context(&args.with)?;
    let place = args.source.display().to_string();

    // Prints the notes.
    source::policy(&args.source, &context)?;
    let text = source::text(&args.source)?;
    let profile = convert::to_oci(&text, &context).with_context(|| place.clone())?;
    let written = match args.form {
        ProfileForm::Oci => convert::to_json(&profile),
        ProfileForm::Spo => convert::to_operator(&profile, &name(args)),
        ProfileForm::Systemd => {
            let (unit, notes) =
                convert::to_unit(&profile, &context).with_context(|| place.clone())?;
            source::report_notes(&place, &notes);
            unit
        }
    };

    filters::write(written.as_bytes(), args.output.as_deref())?;

    Ok(0)
}

/// The name that was asked for, or that of the file as Kubernetes takes names.
fn name(args: &WriteArgs) -> String {
    if let Some(name) = &args.name {
        return name.clone();
    }

    let stem = args
        .source
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let kept = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '-' | '.') => c,
        _ => '-',
    };
    let name: String = stem.chars().map(kept).collect();
    match name.trim_matches(['-', '.']) {
        "" => "profile".to_owned(),
        name => name.to_owned(),
    }
}
