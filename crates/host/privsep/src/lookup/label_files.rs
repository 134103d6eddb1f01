//! Security labels of processes, read from files that stay open: a process that makes one event mostly makes others.

use crate::lookup::kernel;
use compose::KernelFile;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Number of processes whose files stay open.
const OPEN_MAX: usize = 32;
/// Length of most labels, in bytes.
const USUAL: usize = 256;
/// The longest label.
const LONGEST: usize = 1 << 20;

/// The files with the labels of the processes that were asked for last. A file shows the label that its process has when
/// it is read, and can no longer be read once the process has ended, even if another one has its number.
#[derive(Default)]
pub(crate) struct LabelFiles(Mutex<[Option<(u32, File)>; OPEN_MAX]>);

impl LabelFiles {
    /// The contents of [`KernelFile::Label`] of process `pid`.
    pub(crate) fn read(&self, pid: u32) -> Option<Vec<u8>> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut files[pid as usize % OPEN_MAX];
        if let Some((_, file)) = place.as_ref().filter(|(of, _)| *of == pid) {
            if let Some(label) = contents(file) {
                return Some(label);
            }
        }

        *place = None;
        let file = kernel::open(KernelFile::Label(Some(pid)))?;
        let label = contents(&file)?;
        *place = Some((pid, file));
        Some(label)
    }
}

/// What the kernel shows in such a file, which it gives out whole if there is room.
fn contents(file: &File) -> Option<Vec<u8>> {
    let mut label = vec![0; USUAL];
    loop {
        let len = file.read_at(&mut label, 0).ok()?;
        if len < label.len() {
            label.truncate(len);
            return Some(label);
        }
        if len >= LONGEST {
            return None;
        }
        label.resize(4 * len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_label_is_that_of_the_file_however_often_it_is_read() {
        let files = LabelFiles::default();
        let own = std::process::id();
        let of_file = kernel::file(KernelFile::Label(Some(own)));
        for _ in 0..3 {
            assert_eq!(files.read(own), of_file);
        }
    }

    #[test]
    fn a_process_that_has_ended_has_no_label() {
        let files = LabelFiles::default();
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let of_child = kernel::file(KernelFile::Label(Some(child.id())));
        assert_eq!(files.read(child.id()), of_child);
        child.kill().expect("the child is there");
        child.wait().expect("the child is there");
        assert_eq!(files.read(child.id()), None);
        let is_kept = |file: &Option<(u32, File)>| file.is_some();
        assert!(!files.0.lock().expect("no panic").iter().any(is_kept));
    }

    #[test]
    fn a_long_label_is_read_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("label");
        for len in [0, 1, USUAL - 1, USUAL, USUAL + 1, 5 * USUAL, LONGEST] {
            std::fs::write(&path, vec![b'l'; len]).expect("written");
            let read = contents(&File::open(&path).expect("it is there"));
            let expected = (len < LONGEST).then_some(len);
            assert_eq!(read.map(|label| label.len()), expected, "{len}");
        }
    }
}
