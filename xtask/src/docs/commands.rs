//! Help of commands as the program prints it: the part `help COMMAND` of a page.

use anyhow::{Context, Result};
use clap::CommandFactory;

/// Width of the help in columns: that of a terminal.
const COLUMNS: usize = 80;

/// The output of `tarsier COMMAND --help`; `COMMAND` is empty, `run`, `rules check` and so on.
pub(super) fn help(command: &str) -> Result<String> {
    if let Some(usage) = cli::usage(command) {
        return Ok(format!("```text\n{usage}```\n"));
    }

    // A program of its own, which `tarsier forward` runs.
    let (program, command) = match command.strip_prefix("forward") {
        Some(rest) => (cli::forward::ForwardCli::command(), rest),
        None => (cli::Cli::command(), command),
    };
    let mut tarsier = program.term_width(COLUMNS).disable_help_subcommand(true);
    tarsier.build();
    let mut found = &mut tarsier;
    for name in command.split_whitespace() {
        found = found
            .find_subcommand_mut(name)
            .with_context(|| format!("no command `tarsier {command}`"))?;
    }

    let help = found.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();

    Ok(format!("```text\n{}\n```\n", lines.join("\n").trim_end()))
}

/// The words after `tarsier` of every command, including commands that only have subcommands.
#[cfg(test)]
pub(crate) fn all() -> Vec<String> {
    fn add(command: &clap::Command, before: &str, names: &mut Vec<String>) {
        for each in command
            .get_subcommands()
            .filter(|each| each.get_name() != "help")
        {
            let name = format!("{before} {}", each.get_name()).trim().to_owned();
            names.push(name.clone());
            add(each, &name, names);
        }
    }

    let mut names = Vec::new();
    add(&cli::Cli::command(), "", &mut names);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_root;

    #[test]
    fn the_reference_has_the_help_of_every_command() {
        let page = std::fs::read_to_string(source_root().join("docs/reference/commands.md"));
        let page = page.expect("the reference of commands");
        for name in all() {
            assert!(
                page.contains(&format!("<!-- help {name} -->")),
                "tarsier {name}"
            );
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let error = help("rules burn").expect_err("no such command");
        assert_eq!(error.to_string(), "no command `tarsier rules burn`");
        assert!(help("rules check").expect("help").contains("--log <FILE>"));
    }
}
