//! Finds the manual's pages, their headings and links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{bail, Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The table of contents, relative to the root of the source tree; its links are relative to its directory.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";
/// Texts with placeholders, which are not pages.
const TEMPLATES: &str = "docs/figures";

/// The hand-written pages, relative to the root of the source tree, in order.
pub(super) fn written(root: &Path) -> Result<BTreeSet<String>> {
    let mut pages = BTreeSet::from([
        "CHANGELOG.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
        "README.md".to_owned(),
        "SECURITY.md".to_owned(),
        "crates/log/record/docs/json.md".to_owned(),
    ]);
    add(root, Path::new("docs"), &mut pages)?;
    Ok(pages)
}

fn add(root: &Path, directory: &Path, pages: &mut BTreeSet<String>) -> Result<()> {
    if directory == Path::new(TEMPLATES) {
        return Ok(());
    }

    let context = || format!("reading {}", directory.display());
    for entry in fs::read_dir(root.join(directory)).with_context(context)? {
        let entry = entry.with_context(context)?;
        let path = directory.join(entry.file_name());
        if entry.file_type().with_context(context)?.is_dir() {
            add(root, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.insert(path.display().to_string());
        }
    }

    Ok(())
}

/// The pages in the table of contents, relative to the root of the source tree, in its order.
pub(super) fn in_contents(root: &Path) -> Result<Vec<String>> {
    let text =
        fs::read_to_string(root.join(SUMMARY)).with_context(|| format!("reading {SUMMARY}"))?;
    let page = Page::parse(&text);
    page.links
        .iter()
        .map(|link| resolve(SUMMARY, &link.to))
        .collect()
}

/// The parts of a page that are checked.
pub(super) struct Page {
    pub(super) links: Vec<Link>,
    /// Anchors of the page's headings.
    pub(super) anchors: Vec<String>,
    /// Text between single backquotes.
    pub(super) code: Vec<String>,
}

/// A link or image.
pub(super) struct Link {
    /// The target as written, without `#ANCHOR`.
    pub(super) to: String,
    pub(super) anchor: Option<String>,
}

impl Page {
    pub(super) fn parse(text: &str) -> Page {
        let mut page = Page {
            links: Vec::new(),
            anchors: Vec::new(),
            code: Vec::new(),
        };
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link::parse(&dest_url));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor_of(&heading.take().unwrap_or_default(), &page.anchors);
                    page.anchors.push(anchor);
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    page.code.push(code.to_string());
                }
                Event::Text(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }

        page
    }
}

impl Link {
    fn parse(destination: &str) -> Link {
        let (to, anchor) = match destination.split_once('#') {
            Some((to, anchor)) => (to, Some(anchor.to_owned())),
            None => (destination, None),
        };
        Link {
            to: to.to_owned(),
            anchor,
        }
    }

    /// Whether the link leads out of the source tree.
    pub(super) fn is_external(&self) -> bool {
        ["https://", "http://", "mailto:"]
            .iter()
            .any(|scheme| self.to.starts_with(scheme))
    }
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor_of(heading: &str, earlier: &[String]) -> String {
    let kept = heading.trim().to_lowercase();
    let anchor: String = kept
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect();

    let same = |other: &&String| {
        let number = other
            .strip_prefix(&anchor)
            .and_then(|rest| rest.strip_prefix('-').map(str::parse::<u32>));
        **other == anchor || matches!(number, Some(Ok(_)))
    };
    match earlier.iter().filter(same).count() {
        0 => anchor,
        n => format!("{anchor}-{n}"),
    }
}

/// Target of a link on `page`, relative to the root of the source tree; the page itself if the link is only an
/// `#ANCHOR`.
pub(super) fn resolve(page: &str, to: &str) -> Result<String> {
    if to.is_empty() {
        return Ok(page.to_owned());
    }

    let mut path: PathBuf = Path::new(page).parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(to).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            Component::Normal(name) => path.push(name),
            _ => bail!("{page}: the link to {to} leads out of the source tree"),
        }
    }

    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github_and_mdbook() {
        let page = Page::parse("# What's `-l`?\n## Two\ntext `code`\n## Two\n### a_b, c\n");
        assert_eq!(page.anchors, ["whats--l", "two", "two-1", "a_b-c"]);
        assert!(page.code.contains(&"code".to_owned()));
    }

    #[test]
    fn links_are_relative_to_their_page() {
        let page =
            Page::parse("[a](../x.md#y) ![b](z.svg) [c](https://example.org/#q) `[no](n.md)`");
        let found: Vec<(&str, bool)> = page
            .links
            .iter()
            .map(|link| (link.to.as_str(), link.is_external()))
            .collect();
        assert_eq!(
            found,
            [
                ("../x.md", false),
                ("z.svg", false),
                ("https://example.org/", true)
            ]
        );
        assert_eq!(page.links[0].anchor.as_deref(), Some("y"));
        let resolved = |to| resolve("docs/guide/rules.md", to).expect("inside");
        assert_eq!(resolved("../x.md"), "docs/x.md");
        assert_eq!(resolved(""), "docs/guide/rules.md");
        assert_eq!(resolved("../../README.md"), "README.md");
        assert!(resolve("README.md", "../x").is_err());
        assert!(resolve("README.md", "/etc/passwd").is_err());
    }
}
