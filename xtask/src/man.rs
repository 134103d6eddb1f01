//! Manual pages and shell completions, made from the definitions with which the program parses its command line.
//!
//! The pages are not committed: building a package runs `cargo xtask man`, so no page is older than
//! the program.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use conf::{described_keys, KeyDescription};

use crate::docs::text::wrap;

/// Text of tarsier(8) apart from commands and options, in roff.
const MORE: &str = include_str!("man/tarsier.roff");
/// Text of tarsier.conf(5) before and after its keys, in roff.
const CONFIGURATION: [&str; 2] = [
    include_str!("man/configuration-begins.roff"),
    include_str!("man/configuration-ends.roff"),
];
const SECTION: &str = "8";
const MANUAL: &str = "Tarsier";

/// Writes `man/*.8`, `man/tarsier.conf.5` and `completions/` below `directory`.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let man = directory.join("man");
    let completions = directory.join("completions");
    for each in [&man, &completions] {
        fs::create_dir_all(each).with_context(|| format!("making {}", each.display()))?;
    }
    for (name, text) in pages()? {
        let path = man.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }

    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut command = tarsier();
        let name = match shell {
            Shell::Zsh => "_tarsier".to_owned(),
            shell => format!("tarsier.{shell}"),
        };
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "tarsier", &mut text);
        let path = completions.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }

    Ok(())
}

/// The commands of `tarsier`, with those of tarsier-forward under `forward`.
fn tarsier() -> Command {
    cli::Cli::command().mut_subcommand("forward", |_| {
        cli::forward::ForwardCli::command().name("forward")
    })
}

/// File names and texts of all manual pages.
fn pages() -> Result<Vec<(String, String)>> {
    let mut tarsier = tarsier().disable_help_subcommand(true);
    tarsier.build();
    let mut pages = vec![("tarsier.8".to_owned(), main_page(&tarsier)?)];
    add_pages(&tarsier, "tarsier", &mut pages)?;
    pages.push(("tarsier.conf.5".to_owned(), configuration_page()));
    Ok(pages)
}

fn add_pages(command: &Command, before: &str, pages: &mut Vec<(String, String)>) -> Result<()> {
    for each in command.get_subcommands() {
        let name = format!("{before}-{}", each.get_name());
        let man = man(each);
        let mut page = Vec::new();
        man.render(&mut page)?;
        let mut text = String::from_utf8(page)?;
        if name == "tarsier-ctl" {
            text.push_str(&format!(
                ".SH OPTIONS OF AUDITCTL\n{}",
                literal(cli::ctl::USAGE)
            ));
        }
        pages.push((format!("{name}.{SECTION}"), text));
        add_pages(each, &name, pages)?;
    }

    Ok(())
}

fn man(command: &Command) -> clap_mangen::Man {
    clap_mangen::Man::new(command.clone())
        .section(SECTION)
        .manual(MANUAL)
}

/// tarsier(8): all commands with their options, then files, signals and exit status.
fn main_page(tarsier: &Command) -> Result<String> {
    let man = man(tarsier);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut text = String::from_utf8(page)?;
    text.push_str(".SH COMMANDS\n");
    add_commands(tarsier, "tarsier", &mut text)?;
    Ok(text + MORE)
}

fn add_commands(command: &Command, before: &str, text: &mut String) -> Result<()> {
    for each in command.get_subcommands() {
        let name = format!("{before} {}", each.get_name());
        text.push_str(&format!(".SS \"{name}\"\n"));
        if let Some(about) = each.get_about() {
            text.push_str(&format!("{}\n", escaped(&format!("{about}."))));
        }
        if let Some(usage) = cli::usage(each.get_name()) {
            text.push_str(&literal(usage));
            continue;
        }
        let mut options = Vec::new();
        man(each).render_options_section(&mut options)?;
        let options = String::from_utf8(options)?;
        text.push_str(&options.replace(".SH OPTIONS\n", ""));
        add_commands(each, &name, text)?;
    }

    Ok(())
}

/// Formats a text verbatim, line by line.
fn literal(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    format!(".nf\n{}\n.fi\n", lines.join("\n"))
}

/// Escapes a line so that roff prints it verbatim.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        format!("\\&{text}")
    } else {
        text
    }
}

/// tarsier.conf(5).
fn configuration_page() -> String {
    let [begins, ends] = CONFIGURATION;
    let mut text = begins.to_owned();
    let (own, auditd): (Vec<_>, Vec<_>) = described_keys().into_iter().partition(|key| key.is_own);

    for (title, keys) in [("KEYS OF AUDITD.CONF", auditd), ("KEYS OF TARSIER", own)] {
        text.push_str(&format!(".SH {title}\n"));
        for key in keys {
            text.push_str(&format!(
                ".TP\n.B {}\n{}\n",
                escaped(key.name),
                escaped(&described(&key))
            ));
        }
    }

    text + ends
}

/// Describes a key in sentences: its values, its defaults and its meaning.
fn described(key: &KeyDescription) -> String {
    let mut text = format!("{}.", key.values);
    match (key.unset, key.shipped) {
        ("", _) => {}
        (unset, "") => text.push_str(&format!(" Unset: {unset}.")),
        (unset, shipped) => text.push_str(&format!(" Unset: {unset}; without a file: {shipped}.")),
    }
    match key.no_effect {
        Some(instead) => text.push_str(&format!(" No effect: {instead}.")),
        None => text.push_str(&format!(" {}", key.meaning)),
    }
    text
}

/// The part `configuration` of the reference: lists of keys.
pub(crate) fn configuration_tables() -> Result<String> {
    let (own, auditd): (Vec<_>, Vec<_>) = described_keys().into_iter().partition(|key| key.is_own);
    let (none, auditd): (Vec<_>, Vec<_>) =
        auditd.into_iter().partition(|key| key.no_effect.is_some());
    let groups = [
        ("Keys of auditd.conf", auditd),
        ("Keys of Tarsier's own", own),
        ("Keys without effect", none),
    ];
    let mut text = String::new();
    for (title, keys) in groups {
        text.push_str(&format!("\n## {title}\n\n"));
        for key in keys {
            let sentences = described(&key).replace('|', "\\|");
            text.push_str(&wrap(&format!("**`{}`**: {sentences}", key.name), "* "));
        }
    }

    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page as a reader sees it, with roff's escapes resolved.
    fn shown(text: &str) -> String {
        let plain = ["\\fB", "\\fR", "\\fI", "\\&"]
            .iter()
            .fold(text.to_owned(), |text, escape| text.replace(escape, ""));
        plain.replace("\\-", "-").replace("\\e", "\\")
    }

    /// Every option of a command and its subcommands, as `(page, --option)`.
    fn options(command: &Command, page: &str, all: &mut Vec<(String, String)>) {
        for argument in command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
        {
            if let Some(long) = argument.get_long() {
                all.push((page.to_owned(), format!("--{long}")));
            }
            if let Some(short) = argument.get_short() {
                all.push((page.to_owned(), format!("-{short}")));
            }
        }
        for each in command.get_subcommands() {
            options(each, &format!("{page}-{}", each.get_name()), all);
        }
    }

    #[test]
    fn every_option_is_in_tarsier_8_and_in_the_page_of_its_command() {
        let pages = pages().expect("pages");
        let page = |name: &str| {
            let found = pages.iter().find(|(file, _)| *file == format!("{name}.8"));
            shown(&found.unwrap_or_else(|| panic!("no page {name}")).1)
        };
        let mut tarsier = tarsier().disable_help_subcommand(true);
        tarsier.build();
        let mut all = Vec::new();
        options(&tarsier, "tarsier", &mut all);
        assert!(all.len() > 60, "{}", all.len());
        let main = page("tarsier");
        for (name, option) in all {
            let command = name.replace('-', " ");
            let is_top = command == "tarsier";
            let section = if is_top {
                main.as_str()
            } else {
                let (_, rest) = main
                    .split_once(&format!(".SS \"{command}\"\n"))
                    .unwrap_or_else(|| panic!("tarsier.8 lacks {command}"));
                rest.split(".SS ").next().unwrap_or_default()
            };
            assert!(
                section.contains(&option),
                "tarsier.8, {command}: no {option}"
            );
            assert!(page(&name).contains(&option), "{name}.8: no {option}");
        }
        for line in cli::ctl::USAGE.lines() {
            assert!(
                main.contains(line) && page("tarsier-ctl").contains(line),
                "{line}"
            );
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let pages = pages().expect("pages");
        for name in crate::docs::command_names() {
            let file = format!("tarsier-{}.8", name.replace(' ', "-"));
            assert!(pages.iter().any(|(page, _)| *page == file), "{file}");
        }
    }

    #[test]
    fn every_key_is_in_tarsier_conf_5() {
        let text = shown(&configuration_page());
        for key in described_keys() {
            assert!(
                text.contains(&format!("\n.B {}\n", key.name)),
                "{}",
                key.name
            );
        }
    }

    #[test]
    fn man_takes_every_page_without_complaint() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path()).expect("pages");
        let bash = fs::read_to_string(dir.path().join("completions/tarsier.bash"));
        assert!(bash.expect("completions").contains("--ring-size"));
        if std::process::Command::new("groff")
            .arg("--version")
            .output()
            .is_err()
        {
            println!("skipped: groff on the manual pages: not installed");
            return;
        }
        for entry in fs::read_dir(dir.path().join("man")).expect("pages") {
            let path = entry.expect("a page").path();
            let arguments = ["-man", "-ww", "-z", "-Kutf8"];
            let output = std::process::Command::new("groff")
                .args(arguments)
                .arg(&path)
                .output();
            let output = output.expect("groff");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() && said.is_empty(),
                "{}: {said}",
                path.display()
            );
        }
    }
}
