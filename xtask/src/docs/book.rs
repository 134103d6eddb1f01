//! The pages laid out for mdBook: one directory with `SUMMARY.md` at the top. Pages keep their paths below it, so
//! links between them are the same in the book as in the source tree.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::pages::{self, Page};

/// mdBook's settings.
const SETTINGS: &str = "docs/book.toml";

/// Recreates `to`: `book.toml`, and in `src` the pages of the table of contents and the files that they link to.
pub(crate) fn stage(root: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("removing {}", to.display()))?;
    }
    let source = to.join("src");
    for page in pages::in_contents(root)? {
        let text =
            fs::read_to_string(root.join(&page)).with_context(|| format!("reading {page}"))?;
        copy(root, &source, &page)?;
        for link in Page::parse(&text)
            .links
            .iter()
            .filter(|link| !link.is_external())
        {
            let file = pages::resolve(&page, &link.to)?;
            copy(root, &source, &file).with_context(|| format!("for {page}"))?;
        }
    }

    let path = to.join("src/SUMMARY.md");
    fs::write(&path, contents(root)?).with_context(|| format!("writing {}", path.display()))?;
    let settings = to.join("book.toml");
    fs::copy(root.join(SETTINGS), settings).with_context(|| format!("copying {SETTINGS}"))?;

    Ok(())
}

fn copy(root: &Path, source: &Path, file: &str) -> Result<()> {
    let to = source.join(file);
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    }
    fs::copy(root.join(file), to).with_context(|| format!("copying {file}"))?;
    Ok(())
}

/// The table of contents, with links relative to the root of the source tree.
fn contents(root: &Path) -> Result<String> {
    let summary = pages::SUMMARY;
    let text =
        fs::read_to_string(root.join(summary)).with_context(|| format!("reading {summary}"))?;
    let mut lines = String::new();

    for line in text.lines() {
        let link = line.split_once("](").and_then(|(before, rest)| {
            let (to, after) = rest.split_once(')')?;
            Some((before, to, after))
        });
        match link {
            Some((before, to, after)) => {
                let to = pages::resolve(summary, to)?;
                lines.push_str(&format!("{before}]({to}){after}\n"));
            }
            None => lines.push_str(&format!("{line}\n")),
        }
    }

    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_root;

    #[test]
    fn every_link_of_the_book_leads_to_a_file_of_the_book() {
        let dir = tempfile::tempdir().expect("a directory");
        let book = dir.path().join("book");
        let root = source_root();
        stage(&root, &book).expect("the pages");
        let source = book.join("src");
        let summary = fs::read_to_string(source.join("SUMMARY.md")).expect("the contents");
        let linked = Page::parse(&summary).links;
        assert!(linked.iter().all(|link| source.join(&link.to).is_file()));
        let pages = pages::in_contents(&root).expect("the contents");
        assert_eq!(linked.len(), pages.len());
        for page in pages {
            let text = fs::read_to_string(source.join(&page)).expect("a page");
            for link in Page::parse(&text)
                .links
                .iter()
                .filter(|link| !link.is_external())
            {
                let file = pages::resolve(&page, &link.to).expect("a place in the tree");
                assert!(source.join(&file).is_file(), "{page}: {file}");
            }
        }
    }
}
