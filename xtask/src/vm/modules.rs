//! Modules of a kernel that tests load: a block device in memory, one that delays another, and what they need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::output_of;

/// The modules, below the directory `kernel` of a package.
const MODULES: [&str; 4] = [
    "fs/configfs/configfs.ko",
    "drivers/block/null_blk/null_blk.ko",
    "drivers/md/dm-mod.ko",
    "drivers/md/dm-delay.ko",
];
/// File beside the modules with the names of those that were looked for.
const TAKEN: &str = "taken";

/// Directory with the modules of the kernel whose image this is. It is empty if the image's package has no modules,
/// as since 7.2.
pub(super) fn directory(image: &Path) -> PathBuf {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    image.with_file_name(format!("modules-{name}"))
}

/// Whether all modules of a package have been taken that it has.
pub(super) fn are_taken(image: &Path) -> bool {
    let taken = fs::read_to_string(directory(image).join(TAKEN));
    taken.is_ok_and(|text| text == MODULES.join("\n"))
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
    let taken = to.join(TAKEN);
    fs::write(&taken, MODULES.join("\n")).with_context(|| format!("writing {}", taken.display()))
}
