//! Modules of a kernel that tests load: a block device whose reads take no time, and what it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::output_of;

/// The modules, below the directory `kernel` of a package.
const MODULES: [&str; 2] = [
    "fs/configfs/configfs.ko",
    "drivers/block/null_blk/null_blk.ko",
];

/// Directory with the modules of the kernel whose image this is. It is empty if the image's package has no modules,
/// as since 7.2.
pub(super) fn directory(image: &Path) -> PathBuf {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    image.with_file_name(format!("modules-{name}"))
}

/// Copies the modules of an unpacked package, and decompresses them.
pub(super) fn take(unpacked: &Path, release: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    let root = unpacked.join("lib/modules").join(release).join("kernel");
    for module in MODULES.map(|place| root.join(place)) {
        let compressed = module.with_extension("ko.xz");
        if compressed.exists() {
            output_of(Command::new("xz").arg("-d").arg(&compressed))?;
        }
        if module.exists() {
            let name = module.file_name().unwrap_or_default();
            fs::copy(&module, to.join(name))
                .with_context(|| format!("copying {}", module.display()))?;
        }
    }
    Ok(())
}
