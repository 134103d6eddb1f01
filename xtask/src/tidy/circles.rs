//! Checks that the files of a crate have no circular dependencies.
//!
//! The graph consists of the files below `src`, with an arrow from each file to those whose items it names in
//! `use` lines and in paths that begin with `crate`, `super` or `self`. An item that a module re-exports counts
//! for the file that defines it. There are no arrows between a module and the modules below it: they are parts of
//! one thing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::{without_comments_and_literals, without_tests, Language, Source};
use super::Offence;

/// An arrow from a file to a file.
type Arrow = (String, String);
type Graph = BTreeMap<String, BTreeSet<String>>;

/// An offence for each circle of files. `excused` arrows, written `FILE -> FILE`, are removed first; one of them
/// that is on a circle is an offence under its own name.
pub(super) fn offences(sources: &[Source], excused: &[&str]) -> Vec<Offence> {
    let mut crates: BTreeMap<&str, CrateFiles> = BTreeMap::new();
    for source in sources
        .iter()
        .filter(|source| source.language == Language::Rust)
    {
        if let Some((name, file)) = source.path.split_once("/src/") {
            let code = without_tests(&without_comments_and_literals(&source.text));
            let part = crates.entry(name).or_default();
            part.add(&source.path, module_of(file), &code);
        }
    }
    let mut graph = Graph::new();
    for part in crates.values() {
        graph.extend(part.graph());
    }

    of_graph(graph, excused)
}

fn of_graph(mut graph: Graph, excused: &[&str]) -> Vec<Offence> {
    let excused: Vec<Arrow> = excused
        .iter()
        .filter_map(|arrow| arrow.split_once(" -> "))
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .filter(|(from, to)| graph.get_mut(from).is_some_and(|needed| needed.remove(to)))
        .collect();
    let is_on_circle = |(from, to): &&Arrow| way(&graph, to, from).is_some();
    let cut = excused
        .iter()
        .filter(is_on_circle)
        .map(|(from, to)| Offence {
            place: format!("{from} -> {to}"),
            error: format!("{from} -> {to}: on a circle"),
        });

    let circles = circles(&graph).into_iter().map(|circle| Offence {
        place: format!("{} -> {}", circle[0], circle[1]),
        error: format!("circle: {}", circle.join(" -> ")),
    });

    circles.chain(cut).collect()
}

/// The shortest circle through each arrow that is on one; the first file is repeated at the end.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let mut circles = Vec::new();
    let mut known: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (from, needed) in graph {
        for to in needed {
            let Some(back) = way(graph, to, from) else {
                continue;
            };
            if known.insert(back.iter().cloned().collect()) {
                let mut circle = vec![from.clone()];
                circle.extend(back);
                circles.push(circle);
            }
        }
    }

    circles
}

/// The files on the shortest path, including both ends.
fn way(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([from]);
    while let Some(file) = waiting.pop_front() {
        if file == to {
            let mut way = vec![to.to_owned()];
            let mut at = to;
            while at != from {
                at = before[at];
                way.push(at.to_owned());
            }
            way.reverse();
            return Some(way);
        }
        for next in graph.get(file).into_iter().flatten() {
            if next != from && !before.contains_key(next.as_str()) {
                before.insert(next, file);
                waiting.push_back(next);
            }
        }
    }

    None
}

/// `["a", "b"]` for `a/b.rs` and `a/b/mod.rs`; empty for the crate's root file.
fn module_of(file: &str) -> Vec<String> {
    let name = file.strip_suffix(".rs").unwrap_or(file);
    let mut module: Vec<String> = name.split('/').map(str::to_owned).collect();
    let last = module.last().map_or("", String::as_str);
    let is_directory = last == "mod" || (module.len() == 1 && matches!(last, "lib" | "main"));
    if is_directory {
        module.pop();
    }
    module
}

/// The files of a crate, by the path of their modules.
#[derive(Default)]
struct CrateFiles {
    files: BTreeMap<Vec<String>, File>,
}

struct File {
    path: String,
    /// Names that `use` lines import, and their paths in the crate.
    imports: BTreeMap<String, Vec<String>>,
    /// All paths in the crate that the file names.
    named: BTreeSet<Vec<String>>,
}

impl CrateFiles {
    fn add(&mut self, path: &str, module: Vec<String>, code: &str) {
        let tokens = tokens(code);
        let mut file = File {
            path: path.to_owned(),
            imports: BTreeMap::new(),
            named: BTreeSet::new(),
        };
        let mut at = 0;

        while at < tokens.len() {
            let begins_use =
                tokens[at] == "use" && tokens.get(at + 1).is_some_and(|next| *next != "<");
            if begins_use {
                let mut imports = Vec::new();
                at = use_tree(&tokens, at + 1, &[], &mut imports);
                for (name, path) in imports {
                    file.named.insert(path.clone());
                    file.imports.insert(name, path);
                }
            } else if matches!(tokens[at], "crate" | "super" | "self") {
                let mut path = vec![tokens[at].to_owned()];
                while tokens.get(at + 1) == Some(&"::")
                    && tokens.get(at + 2).is_some_and(|next| is_word(next))
                {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                if path.len() > 1 {
                    file.named.insert(path);
                }
            }
            at += 1;
        }

        self.files.insert(module, file);
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (module, file) in &self.files {
            let needed = graph.entry(file.path.clone()).or_default();
            for path in &file.named {
                let found = self
                    .absolute(module, path)
                    .and_then(|path| self.defining(&path, 0));
                let Some(found) = found else { continue };
                if !found.starts_with(module) && !module.starts_with(found) {
                    needed.insert(self.files[found].path.clone());
                }
            }
        }

        graph
    }

    /// A path as written in the module, converted to one from the crate's root; `None` for one of another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|word| *word == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&module[..0], &path[1..]),
            "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
            "self" => (module, &path[1..]),
            first => {
                let mut child = module.to_vec();
                child.push(first.to_owned());
                if !self.files.contains_key(&child) {
                    return None;
                }
                (module, path)
            }
        };

        Some([base, rest].concat())
    }

    /// The module whose file defines what the path names, found through re-exports.
    fn defining<'c>(&'c self, path: &[String], depth: usize) -> Option<&'c [String]> {
        let length = (0..=path.len())
            .rev()
            .find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, file) = self.files.get_key_value(&path[..length])?;
        let rest = &path[length..];
        let import = rest.first().and_then(|name| file.imports.get(name));

        // Two modules may import from each other; no re-export is nested this deeply.
        if depth >= 8 {
            return Some(module);
        }

        let through = import.and_then(|import| {
            let path = [self.absolute(module, import)?.as_slice(), &rest[1..]].concat();
            self.defining(&path, depth + 1)
        });

        through.or(Some(module))
    }
}

/// Collects names and paths of a `use` tree that begins at a token. Returns the token after it.
fn use_tree(
    tokens: &[&str],
    mut at: usize,
    prefix: &[String],
    imports: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => {}
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = use_tree(tokens, at, &path, imports);
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                return at + 1;
            }
            "*" => {
                imports.push(("*".to_owned(), path));
                return at + 1;
            }
            "as" => {
                let name = tokens.get(at + 1).map_or("_", |name| name);
                imports.push((name.to_owned(), path));
                return at + 2;
            }
            "self" if !prefix.is_empty() => {}
            word if is_word(word) => path.push(word.to_owned()),
            _ => break,
        }
        at += 1;
    }

    if let Some(name) = path.last() {
        imports.push((name.clone(), path));
    }
    at
}

/// Splits code into words, `::`, and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let length = match word {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            word => word,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }

    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors for a crate with these files below `src`.
    fn errors(files: &[(&str, &str)], excused: &[&str]) -> Vec<(String, String)> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(file, text)| Source {
                path: format!("c/src/{file}"),
                language: Language::Rust,
                text: (*text).to_owned(),
            })
            .collect();
        let offences = offences(&sources, excused).into_iter();
        offences
            .map(|each| (each.place, each.error.replace("c/src/", "")))
            .collect()
    }

    #[test]
    fn a_circle_of_three_files_is_told_with_its_path() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\n"),
            ("a.rs", "use std::fmt;\nuse crate::{b::{self, B}, x};\n"),
            ("b.rs", "pub struct B(crate::C);\n"),
            ("c/mod.rs", "fn f() { super::a::g() }\n"),
        ];
        let found = errors(&files, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, "circle: a.rs -> b.rs -> c/mod.rs -> a.rs");
    }

    #[test]
    fn a_module_and_those_below_it_make_no_circle_nor_do_tests_and_comments() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nuse a::A;\n"),
            ("a/mod.rs", "mod inner;\nuse inner::Inner;\n"),
            ("a/inner.rs", "use super::A;\nuse crate::b::B;\n"),
            (
                "b.rs",
                "// use crate::a::inner::Inner;\n#[cfg(test)]\nmod tests {\n    use crate::a::inner::Inner;\n}\n",
            ),
        ];
        assert_eq!(errors(&files, &[]), []);
    }

    #[test]
    fn what_a_module_re_exports_counts_as_its_file() {
        let files = [
            ("lib.rs", ""),
            ("a/mod.rs", "mod x;\nmod y;\npub use x::X as Renamed;\n"),
            ("a/x.rs", "use super::y::Y;\n"),
            ("a/y.rs", "use super::Renamed;\n"),
        ];
        let found = errors(&files, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, "circle: a/x.rs -> a/y.rs -> a/x.rs");
    }

    #[test]
    fn an_excused_arrow_is_an_offence_by_its_name_while_it_is_on_a_circle() {
        let excused = ["c/src/a.rs -> c/src/b.rs"];
        let circle = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
        let places: Vec<String> = errors(&circle, &excused)
            .into_iter()
            .map(|each| each.0)
            .collect();
        assert_eq!(places, excused);
        let line = [("a.rs", "use crate::b::B;"), ("b.rs", "")];
        assert_eq!(errors(&line, &excused), []);
    }
}
